"""Stores, reads, shows and replays dead letters. The actor is in ``actors``."""
