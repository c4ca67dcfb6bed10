#!/usr/bin/env bash
# What the tests of lakes need beside Python's packages: the servers' jars, the jars of S3 and
# PostgreSQL for Spark, and PostgreSQL itself, which is installed where this runs as root.
set -euo pipefail
cd "$(dirname "$0")/.."

.venv/bin/python -m sparkwriter.session.jars extras s3 postgresql
.venv/bin/python -m demo.servers.jars fetch

if ! compgen -G "/usr/lib/postgresql/*/bin/initdb" >/dev/null; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        echo "setup: PostgreSQL, by apt-get"
        { apt-get -q update && DEBIAN_FRONTEND=noninteractive apt-get -q install -y \
            --no-install-recommends postgresql; } >/dev/null || echo "setup: PostgreSQL could not be installed" >&2
    else
        echo "setup: PostgreSQL is missing; tests that need it are skipped (Debian: postgresql)" >&2
    fi
fi
