"""``binlogd gate``: waits until tables hold all that their source had committed by a moment."""
