# The units of systemd/ as a package has them: its paths, and its user instead of a dynamic one,
# whom files can belong to.
s|^# Installed under /opt/binlogd (a checkout after `make setup`)[;.]*|# Installed by the package binlogd;|
s|/opt/binlogd/.venv/bin/binlogd|/usr/bin/binlogd|
s|file:/opt/binlogd/docs|man:binlogd(1) file:/usr/share/doc/binlogd/docs|
/^DynamicUser=/d
s|^User=.*|User=binlogd\nGroup=binlogd\nLogsDirectory=binlogd\nLogsDirectoryMode=0750|
