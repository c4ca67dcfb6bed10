"""Loads: tables are filled from the source's own database, beside the stream (``docs/load.md``)."""
