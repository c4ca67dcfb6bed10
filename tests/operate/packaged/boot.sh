#!/bin/bash
# Boots systemd as PID 1 on a copy of this machine's file system that nothing else sees. Run by
# unshare with namespaces of its own; what is written goes to a tmpfs in FOLDER. Usage: boot.sh FOLDER
set -eu
root=$1/root
mount --make-rprivate /
mount -t tmpfs -o size=4g tmpfs "$1"
mkdir "$1/up" "$1/work" "$root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/up,workdir=$1/work" "$root"
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t tmpfs tmpfs "$root/run"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount --rbind /dev "$root/dev"
# The kernel is the machine's own: nothing here may set its variables, load modules or clear /tmp.
mount --bind "$root/proc/sys" "$root/proc/sys"
mount -o remount,bind,ro "$root/proc/sys"
for unit in systemd-sysctl systemd-modules-load systemd-binfmt systemd-tmpfiles-setup \
    systemd-tmpfiles-setup-dev systemd-remount-fs systemd-udevd systemd-udev-trigger; do
    ln -sf /dev/null "$root/etc/systemd/system/$unit.service"
done
rm -rf "$root"/etc/systemd/system/*.wants
rm -f "$root/usr/sbin/policy-rc.d"
cat >"$root/etc/systemd/system/alone.target" <<'UNIT'
[Unit]
Description=A machine for one service
Wants=systemd-journald.service dbus.service
UNIT
# Not chroot: in one, nobody may make the user namespace of PrivateUsers=.
mkdir "$root/old"
cd "$root"
pivot_root . old
umount -l /old
exec /usr/bin/env -i container=x PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    /lib/systemd/systemd --system --unit=alone.target --log-target=journal
