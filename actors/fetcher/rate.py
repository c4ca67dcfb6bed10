"""How many messages may be read now, by a bound on messages per second. No clock of its own."""

from __future__ import annotations


class Rate:
    """A bucket that fills with so many messages a second, and holds one second's at most."""

    def __init__(self, per_s: float | None) -> None:
        """None: no bound."""
        self._per_s = per_s
        self._left = 0.0 if per_s is None else per_s
        self._at: float | None = None

    def allows(self, most: int, now: float) -> int:
        """How many may be read, ``most`` at most."""
        if self._per_s is None:
            return most
        passed = 0.0 if self._at is None else max(0.0, now - self._at)
        self._left, self._at = min(self._per_s, self._left + passed * self._per_s), now
        return min(most, int(self._left))

    def read(self, messages: int) -> None:
        """So many were read."""
        self._left -= messages

    def due_at(self, now: float) -> float:
        """When the next message may be read, where none may now."""
        assert self._per_s is not None
        return now + max(0.0, 1.0 - self._left) / self._per_s
