#!/usr/bin/env bash
# Makes an image's root file system, a tar file, of Debian's packages and binlogd's own: what the
# Containerfile beside it makes, without a container engine. For the Debian release of this machine,
# whose Python the package is built with. Needs root and mmdebstrap.
# Usage: packaging/image/rootfs.sh DEB TAR [APT_SOURCES], e.g. var/dist/binlogd_0.1.0_amd64.deb, with
# binlogd-query beside it
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
deb=$1 tar=$2 sources=${3:-}
query=$(dirname "$deb")/binlogd-query_${deb##*/binlogd_}
command -v mmdebstrap >/dev/null || { echo "image: mmdebstrap is missing: apt-get install mmdebstrap" >&2; exit 1; }
release=$(. /etc/os-release && echo "$VERSION_CODENAME")

# Without a file of sources mmdebstrap takes those of the release. Man pages and the like are left
# out, as Debian's own images for containers do. Java asks for /proc as it is installed.
mmdebstrap --quiet --mode=root --variant=minbase \
    --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright' \
    --customize-hook="upload $here/install.sh /tmp/install.sh" \
    --customize-hook="upload $deb /tmp/binlogd.deb" \
    --customize-hook="upload $query /tmp/binlogd-query.deb" \
    --customize-hook='mount -t proc proc "$1/proc"' \
    --customize-hook='chroot "$1" sh /tmp/install.sh /tmp/binlogd.deb /tmp/binlogd-query.deb; s=$?; umount "$1/proc"; exit $s' \
    --customize-hook='rm "$1/tmp/install.sh" "$1"/tmp/binlogd*.deb' \
    "$release" "$tar" ${sources:+"$sources"}
ls -l "$tar"
