"""Changes a running daemon by its configuration file: what differs, whether it may, doing it."""
