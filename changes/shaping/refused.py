"""The error of a target whose rows can't have their shape."""

from __future__ import annotations


class ShapeRefused(Exception):
    """The target can't have the shape that its route asks for: why, in one line."""
