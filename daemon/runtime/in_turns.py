"""What waits for a sink's writers, of one pipeline: in its order, but writes pass openings."""

from __future__ import annotations

from collections import deque

from actors.contract.messages import OpenTarget, WriteBatch

Request = OpenTarget | WriteBatch


class InTurns:
    """Requests in their order, but a write has one opening before it, not a thousand.

    After a restart all tables with changes are opened at once. In plain order the first write, and
    the frontier with it, would wait until the last of them is open.
    """

    def __init__(self) -> None:
        self._items: deque[Request] = deque()

    def __len__(self) -> int:
        return len(self._items)

    def add(self, request: Request) -> None:
        """A write goes behind the last write and one opening, where openings alone follow."""
        if not isinstance(request, WriteBatch):
            self._items.append(request)
            return
        writes = (at for at, one in enumerate(self._items) if isinstance(one, WriteBatch))
        self._items.insert(max(writes, default=-1) + 2, request)

    def take(self) -> Request:
        """The next one."""
        return self._items.popleft()
