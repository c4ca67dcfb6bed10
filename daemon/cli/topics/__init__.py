"""``binlogd topics``: what is in topics."""
