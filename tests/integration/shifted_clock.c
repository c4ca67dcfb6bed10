/* A wall clock that a test moves, for a process and its children: LD_PRELOAD=… SHIFTED_CLOCK=FILE.
 *
 * The file holds one 64-bit number, the nanoseconds between the true time and what is shown; it is
 * mapped, so that a jump is seen at once and everywhere. Waits until a wall-clock time end when the
 * shown clock gets there, as the kernel has it: a jump back makes those under way longer. Monotonic
 * clocks and waits are the machine's.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL
#define SLICE (SECOND / 20)
/* Of a wait: no monotonic clock is so far, no wall clock so early. */
#define A_WALL_CLOCK 1000000000LL

static volatile int64_t *shift;
static int (*real_gettime)(clockid_t, struct timespec *);
static int (*real_wait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);

static void begin(void) {
    if (real_gettime) return;
    const char *name = getenv("SHIFTED_CLOCK");
    int file = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
    void *found = file < 0 ? MAP_FAILED : mmap(0, sizeof *shift, PROT_READ, MAP_SHARED, file, 0);
    if (found == MAP_FAILED) _exit(97);
    close(file);
    shift = found;
    real_wait = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    real_gettime = dlsym(RTLD_NEXT, "clock_gettime");
}

__attribute__((constructor)) static void loaded(void) { begin(); }

static int64_t true_now(void) {
    struct timespec now;
    real_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * SECOND + now.tv_nsec;
}

static struct timespec as_timespec(int64_t ns) {
    return (struct timespec){ns / SECOND, ns % SECOND};
}

int clock_gettime(clockid_t clock, struct timespec *out) {
    begin();
    int status = real_gettime(clock, out);
    if (!status && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        *out = as_timespec(out->tv_sec * SECOND + out->tv_nsec + *shift);
    return status;
}

int gettimeofday(struct timeval *out, void *zone) {
    begin();
    int64_t now = true_now() + *shift;
    *out = (struct timeval){now / SECOND, now % SECOND / 1000};
    return 0;
}

time_t time(time_t *out) {
    begin();
    time_t now = (true_now() + *shift) / SECOND;
    if (out) *out = now;
    return now;
}

int timespec_get(struct timespec *out, int base) {
    return base == TIME_UTC && !clock_gettime(CLOCK_REALTIME, out) ? base : 0;
}

int pthread_cond_timedwait(pthread_cond_t *on, pthread_mutex_t *with, const struct timespec *until) {
    begin();
    if (until->tv_sec < A_WALL_CLOCK) return real_wait(on, with, until);
    int64_t end = until->tv_sec * SECOND + until->tv_nsec;
    for (;;) {
        int64_t now = true_now(), left = end - *shift - now;
        struct timespec slice = as_timespec(now + (left < SLICE ? left : SLICE));
        int status = real_wait(on, with, &slice);
        if (status != ETIMEDOUT || true_now() + *shift >= end) return status;
    }
}

int cnd_timedwait(cnd_t *on, mtx_t *with, const struct timespec *until) {
    int status = pthread_cond_timedwait((pthread_cond_t *)on, (pthread_mutex_t *)with, until);
    return status == ETIMEDOUT ? thrd_timedout : status ? thrd_error : thrd_success;
}
