"""``binlogd replicate``: from a database's address to equal tables."""
