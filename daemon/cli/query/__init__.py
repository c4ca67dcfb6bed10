"""``binlogd query``: one SELECT over the tables of a sink."""
