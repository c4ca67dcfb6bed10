#!/usr/bin/env bash
# Brings MySQL for tests: Debian's packages, each checked by the hash in setup/mysql.lock, unpacked
# into var/mysql beside the machine's own. Debian's unstable suite moves: where a package is gone,
# this says so and ends with status 3, and tests that need MySQL are skipped.
# `setup/mysql.sh lock` writes the lock anew from what the suite has now.
set -euo pipefail
cd "$(dirname "$0")/.."

lock=setup/mysql.lock
root=var/mysql
work=var/mysql.new

mirror() {
    # The machine's own mirror, whichever it is.
    { cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null || true; } | sed '/^ *#/d' |
        grep -oE 'https?://[^ ]+/debian/?( |$)' | sed -n '1s/ *$//p'
}

say() { echo "setup: MySQL: $*" >&2; }

if ! command -v dpkg-deb >/dev/null || [ ! -x /usr/lib/apt/apt-helper ]; then
    say "needs dpkg-deb and apt, which this machine lacks; tests that need it are skipped"
    exit 3
fi
base=$(mirror)
if [ -z "$base" ]; then
    say "no mirror in /etc/apt; tests that need it are skipped"
    exit 3
fi

if [ "${1:-}" = lock ]; then
    state=$(mktemp -d)
    trap 'rm -rf "$state"' EXIT
    mkdir -p "$state/lists/partial" "$state/cache/archives/partial"
    echo "deb $base sid main" >"$state/sources.list"
    : >"$state/empty"
    apt=(apt-get -q -o "Dir::Etc::sourcelist=$state/sources.list" -o Dir::Etc::sourceparts=/dev/null
        -o "Dir::State::lists=$state/lists" -o "Dir::Cache=$state/cache" -o APT::Sandbox::User=root)
    "${apt[@]}" update >/dev/null
    ask=("${apt[@]}" -o "Dir::State::status=$state/empty" install -y --no-install-recommends
        mysql-server-core mysql-client)
    "${ask[@]}" -d >/dev/null
    # Of each package: its hash, and its address below the mirror.
    rm "$state"/cache/archives/lock
    mv "$state/cache/archives" "$state/debs"
    mkdir -p "$state/cache/archives/partial"
    "${ask[@]}" --print-uris | sed -nE "s|^'${base%/}/([^']+)' ([^ ]+) .*|\1 \2|p" |
        while read -r path name; do
            echo "$(sha256sum <"$state/debs/$name" | cut -d' ' -f1)  $path"
        done >"$lock.new"
    [ -s "$lock.new" ] || { say "the suite has no mysql-server-core"; exit 1; }
    mv "$lock.new" "$lock"
    echo "setup: MySQL: $(wc -l <"$lock") packages locked"
    exit
fi

if [ -f "$root/lock" ] && cmp -s "$root/lock" "$lock"; then
    exit
fi
rm -rf "$work"
mkdir -p "$work"
while read -r hash path; do
    if ! /usr/lib/apt/apt-helper -o APT::Sandbox::User=root download-file \
        "${base%/}/$path" "$work/package.deb" "SHA256:$hash" >/dev/null 2>&1; then
        rm -rf "$work"
        say "$path is no longer there; tests that need it are skipped (setup/mysql.sh lock)"
        exit 3
    fi
    dpkg-deb -x "$work/package.deb" "$work"
    rm "$work/package.deb"
done <"$lock"
cp "$lock" "$work/lock"
rm -rf "$root"
mv "$work" "$root"
echo "setup: MySQL in $root"
