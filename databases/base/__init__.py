"""``[database.NAME]``: the sources themselves, read by jobs. Never written to."""
