"""``binlogd counts``: row changes that the source made in each minute, and those in its log."""
