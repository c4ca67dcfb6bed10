#!/usr/bin/env bash
# Builds var/dist/binlogd_VERSION_ARCH.deb: an environment of its own in /usr/lib/binlogd, with the
# locked packages and all jars, so that nothing is fetched at installation (docs/decisions/0059); and
# binlogd-query, what `binlogd query` reads a lake with. Prints both paths.
# Usage: packaging/deb/build.sh, after `make setup-tests EXTRAS="s3 postgresql mariadb"`.
set -euo pipefail
cd "$(dirname "$0")/../.."

fail() { echo "deb: $*" >&2; exit 1; }
for tool in dh dpkg-buildpackage /usr/bin/python3; do
    command -v "$tool" >/dev/null || fail "$tool is missing: apt-get install debhelper dpkg-dev python3-venv"
done
/usr/bin/python3 -c 'import ensurepip' 2>/dev/null || fail "apt-get install python3-venv"

version=${VERSION:-$(.venv/bin/python -c 'import tomllib; print(tomllib.load(open("pyproject.toml", "rb"))["project"]["version"])')}
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
work=${WORK:-var/deb}
export SOURCE_DATE_EPOCH version PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1
unset PYTHONPATH PYTHONHOME

# What it is made from is kept beside it: an unchanged package is not built again.
deb=var/dist/binlogd_${version}_$(dpkg --print-architecture).deb
query=${deb/binlogd_/binlogd-query_}
from=$({ git ls-files -z --cached --others --exclude-standard -- . ':!tests' ':!bench' |
    xargs -0 sha256sum 2>/dev/null || true; /usr/bin/python3 --version; } | sha256sum)
if [ -f "$deb" ] && [ -f "$query" ] && [ "$(cat "$deb.from" 2>/dev/null)" = "$from" ]; then
    printf '%s\n' "$query" "$deb"
    exit
fi

rm -rf "$work"
mkdir -p "$work/binlogd"
cp -r packaging/deb/debian "$work/binlogd/debian"
sed "s/@VERSION@/$version/; s/@DATE@/$(date -u -R -d "@$SOURCE_DATE_EPOCH")/" \
    packaging/deb/debian/changelog >"$work/binlogd/debian/changelog"
python=$(/usr/bin/python3 -c 'import sys; print("%d.%d" % sys.version_info[:2], "%d.%d" % (sys.version_info[0], sys.version_info[1] + 1))')
sed -i "s/@PYTHON@/${python% *}/; s/@NEXT@/${python#* }/" "$work/binlogd/debian/control"
checkout=$PWD
(cd "$work/binlogd" && CHECKOUT=$checkout dpkg-buildpackage -b -us -uc -d -nc) >"$work/build.log" 2>&1 ||
    { tail -20 "$work/build.log" >&2; fail "see $work/build.log"; }
mkdir -p var/dist
mv "$work"/binlogd_*.deb "$deb"
mv "$work"/binlogd-query_*.deb "$query"
rm -rf "$work/binlogd"
echo "$from" >"$deb.from"
printf '%s\n' "$query" "$deb"
