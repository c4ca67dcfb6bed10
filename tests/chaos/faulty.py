"""``binlogd`` with one fault in it: ``python -m tests.chaos.faulty FAULT TIMES ARGUMENTS...``.

The daemon itself is the real one; what is patched is where it is cut off: at the TIMES-th passing
of a named step the process kills itself with SIGKILL, so nothing of it can clean up.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

from actors.contract import effects as fx
from actors.runtime import effect_handlers as handlers
from daemon.state import offset_file
from sources.kafka import source as kafka_source
from sparkwriter import sinks as tier
from sparkwriter.iceberg import compact as iceberg_compact
from sparkwriter.iceberg import sink as iceberg
from sparkwriter.sql import ledger as jdbc_ledger


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _wrap(owner: Any, name: str, around: Callable[..., Any]) -> None:
    inner = getattr(owner, name)
    setattr(owner, name, lambda *args, **kwargs: around(inner, *args, **kwargs))


def _cut(owner: Any, name: str, times: int, when: Callable[..., bool], *, after: bool) -> None:
    """Die before or after the given passing of a method, counted where ``when`` says so."""
    left = [times]
    lock = threading.Lock()

    def around(inner: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        with lock:
            counts = when(*args)
            left[0] -= counts
            now = counts and left[0] == 0
        if now and not after:
            _die()
        answer = inner(*args, **kwargs)
        if now:
            _die()
        return answer

    _wrap(owner, name, around)


def _is(kind: type) -> Callable[..., bool]:
    return lambda *args: isinstance(args[-1], kind)


def after_stage(times: int) -> None:
    """A batch is staged; nobody has written it."""
    _cut(handlers.ProcessorEffects, "__call__", times, _is(fx.Stage), after=True)


def in_merge(times: int) -> None:
    """Spark is in the middle of the statement, or the files of a write are made."""
    left = [times]

    def around(inner: Callable[..., Any], *args: Any) -> Any:
        left[0] -= 1
        if left[0] == 0:
            threading.Timer(0.1, _die).start()
        return inner(*args)

    _wrap(iceberg.IcebergWriter, "_publish", around)


def in_transaction(times: int) -> None:
    """A database has the rows and the marks, and has not committed."""
    _cut(jdbc_ledger.Ledger, "note", times, lambda *_: True, after=True)


def in_compaction(times: int) -> None:
    """Files are written anew; the table does not know of it."""
    _cut(iceberg_compact.Compactor, "_written", times, lambda *_: True, after=True)


def after_commit(times: int) -> None:
    """The write is published; neither the committer nor the processor has heard of it."""
    _cut(handlers.WriterEffects, "__call__", times, _is(fx.Publish), after=True)


def between_file_and_kafka(times: int) -> None:
    """The local file holds the frontier; Kafka does not."""
    _cut(handlers.FetcherEffects, "__call__", times, _is(fx.Commit), after=False)


def in_rebalance(times: int) -> None:
    """Partitions are being given to this member."""
    _cut(kafka_source.KafkaSource, "_on_assign", times, lambda *_: True, after=False)


def during_start(times: int) -> None:
    """Spark is being started."""

    def around(inner: Callable[..., Any], *args: Any) -> Any:
        threading.Timer(3.0 * times, _die).start()
        return inner(*args)

    _wrap(tier.ConfiguredSinks, "start", around)


def disk_full(times: int) -> None:
    """For a while the state directory takes no file: the next 20 saves fail."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    left = [times, 20]

    def around(inner: Callable[..., Any], *args: Any) -> Any:
        left[0] -= 1
        if left[0] > 0 or left[1] == 0:
            return inner(*args)
        left[1] -= 1
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (64, before[1]))
        try:
            return inner(*args)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    _wrap(offset_file.OffsetFile, "save", around)


STEPS: dict[str, Callable[[int], None]] = {
    "after-stage": after_stage,
    "in-merge": in_merge,
    "in-transaction": in_transaction,
    "in-compaction": in_compaction,
    "after-commit": after_commit,
    "between-file-and-kafka": between_file_and_kafka,
    "in-rebalance": in_rebalance,
    "during-start": during_start,
    "disk-full": disk_full,
}


def main() -> None:
    """Cut the step and be the daemon."""
    name, times, *arguments = sys.argv[1:]
    if name != "none":
        STEPS[name](int(times))
    sys.argv = ["binlogd", *arguments]
    from daemon.cli.__main__ import main as binlogd

    binlogd()


if __name__ == "__main__":
    main()
