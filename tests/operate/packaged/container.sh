#!/bin/bash
# Makes the mounts of a container and becomes its command. Run by unshare with namespaces of its own.
# Usage: container.sh ROOT STATE CONFIG COMMAND…
set -eu
root=$1 state=$2 config=$3
shift 3
mount --make-rprivate /
mount --bind "$root" "$root"
mount --bind "$state" "$root/var/lib/binlogd"
touch "$root/etc/binlogd/config.toml"
mount --bind "$config" "$root/etc/binlogd/config.toml"
# As an engine does: Spark looks up this machine's name.
hostname container
echo "127.0.0.1 localhost container" >"$root/etc/hosts"
mount -t tmpfs -o size=256m,mode=1777 tmpfs "$root/tmp"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -o remount,bind,ro "$root"
cd "$root"
mkdir tmp/old
pivot_root . tmp/old
umount -l /tmp/old
rmdir /tmp/old
exec /usr/bin/env -i PATH=/usr/local/bin:/usr/bin:/bin LC_ALL=C.UTF-8 \
    setpriv --reuid=10001 --regid=10001 --clear-groups --no-new-privs --bounding-set=-all \
    --inh-caps=-all "$@"
