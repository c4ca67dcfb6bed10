"""``binlogd offsets where``: where a message of the log is, for each of its targets."""
