#!/usr/bin/env bash
# Fills a package's folder with /usr/lib/binlogd. Run by debian/rules, with CHECKOUT and version.
# Usage: tree.sh FOLDER
set -euo pipefail
stage=$1
home=/usr/lib/binlogd
root=$stage$home
run() { "$root/bin/python3" "$@"; }
pip() { "$CHECKOUT/.venv/bin/python" -m pip --python "$root/bin/python3" --quiet "$@"; }

/usr/bin/python3 -m venv --without-pip "$root"
cd "$CHECKOUT"
pip install --require-hashes --no-deps -r requirements-build.txt
pip install --require-hashes --no-deps --no-build-isolation -r requirements.txt
pip install --require-hashes --no-deps --no-build-isolation -r requirements-tracing.txt
pip install --require-hashes --no-deps --no-build-isolation -r requirements-query.txt
source=$(mktemp -d)
trap 'rm -rf "$source"' EXIT
git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' name; do
    [ ! -e "$name" ] || cp --parents -L "$name" "$source"
done
sed -i "s/^version = .*/version = \"$version\"/" "$source/pyproject.toml"
pip install --no-index --no-deps --no-build-isolation "$source"
"$root/bin/binlogd" setup s3 postgresql mariadb --from var
python3 packaging/leave_out.py "$root"
(cd "$source" && "$root/bin/python3" setup/man_pages.py "$stage/generated")
pip uninstall --yes setuptools wheel

# Of the programs that packages bring, only ours is meant for people.
find "$root/bin" -mindepth 1 ! -name 'python*' ! -name binlogd -delete
find "$root" -name direct_url.json -delete
sed -i "1s|.*|#!$home/bin/python3|" "$root/bin/binlogd"
sed -i '/^command = /d' "$root/pyvenv.cfg"
find "$root" -name __pycache__ -prune -exec rm -r {} +
# By hash and never looked at again: the files are dpkg's, and their times are not compared.
run -m compileall -q -s "$stage" --invalidation-mode unchecked-hash "$root/lib"
# Some packages mark modules as programs.
find "$root/lib" -type f -perm /111 ! -name '*.so*' | while IFS= read -r file; do
    [ "$(head -c 2 "$file")" = '#!' ] || [ "$(head -c 4 "$file" | tail -c 3)" = ELF ] || chmod a-x "$file"
done
chmod a+x "$root"/lib/python3*/site-packages/pyspark/bin/load-spark-env.sh
# An editor's leftovers.
find "$root" -name '.gitignore' -delete
