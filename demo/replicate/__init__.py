"""The demo of ``binlogd replicate``: a database, one command, kills, a comparison."""
