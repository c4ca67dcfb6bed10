"""``binlogd support-bundle``: what somebody who helps wants to see, in one file."""
