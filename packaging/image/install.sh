#!/bin/sh
# Inside an image: installs binlogd's packages, whose user gets the number that deploy/kubernetes
# names. Usage: install.sh DEB...
set -eu
export DEBIAN_FRONTEND=noninteractive
# Java registers a man page there, and images have no such folder.
mkdir -p /usr/share/man/man1
apt-get update -qq
apt-get install -qq --yes --no-install-recommends "$@"
groupmod --gid 10001 binlogd
usermod --uid 10001 --gid 10001 binlogd
install -d -o binlogd -g binlogd -m 0750 /var/lib/binlogd
# A container mounts its own: the package's example has no place in an image.
rm -f /etc/binlogd/config.toml
apt-get clean
rm -rf /var/lib/apt/lists/*
