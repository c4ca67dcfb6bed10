#!/usr/bin/env bash
# What the tests of lakes and databases need beside Python's packages: the servers' jars, the jars of
# S3 and of databases for Spark, PostgreSQL and MariaDB, which are installed where this runs as root,
# and MySQL (setup/mysql.sh).
set -euo pipefail
cd "$(dirname "$0")/.."

.venv/bin/python -m sparkwriter.session.jars extras s3 postgresql mariadb
.venv/bin/python -m demo.servers.jars fetch

install() { # PACKAGE NAME
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        echo "setup: $2, by apt-get"
        { apt-get -q update && DEBIAN_FRONTEND=noninteractive apt-get -q install -y \
            --no-install-recommends "$1"; } >/dev/null || echo "setup: $2 could not be installed" >&2
    else
        echo "setup: $2 is missing; tests that need it are skipped (Debian: $1)" >&2
    fi
}

compgen -G "/usr/lib/postgresql/*/bin/initdb" >/dev/null || install postgresql PostgreSQL
PATH=$PATH:/usr/sbin command -v mariadbd >/dev/null || install mariadb-server MariaDB
setup/mysql.sh || [ $? = 3 ] # 3: its packages are gone, which it has said
