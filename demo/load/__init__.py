"""``make demo-load``: from nothing to proved equal, beside changes and a ``kill -9``."""
