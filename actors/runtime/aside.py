"""A call on a thread of its own, whose result somebody waits for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Aside(Generic[T]):
    """A call on a thread of its own."""

    def __init__(self, act: Callable[[], T]) -> None:
        self._found: list[T] = []
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(act,), daemon=True)
        self._thread.start()

    @property
    def failed(self) -> bool:
        """Whether it has ended without a result."""
        return self._failure is not None

    def ended(self, within_s: float) -> bool:
        """Wait so long for it; whether it has ended."""
        self._thread.join(within_s)
        return not self._thread.is_alive()

    def result(self) -> T:
        """Wait for it. Raises what it raised."""
        self._thread.join()
        if self._failure is not None:
            raise self._failure
        return self._found[0]

    def _run(self, act: Callable[[], T]) -> None:
        try:
            self._found.append(act())
        except BaseException as error:  # raised again on the thread that waits for it
            self._failure = error
