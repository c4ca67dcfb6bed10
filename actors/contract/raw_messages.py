"""Raw messages of a log, as they wait and travel before they are decoded."""

from __future__ import annotations

MESSAGE_OVERHEAD = 80
"""Bytes that a message costs besides its own: a bytes object's head, an int, two list places."""
