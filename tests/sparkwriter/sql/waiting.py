"""Waiting for what another thread or server does."""

from __future__ import annotations

import threading
from collections.abc import Callable


def until(true: Callable[[], bool]) -> None:
    """Ask again and again; the test's own time limit ends it."""
    pause = threading.Event()
    while not true():
        pause.wait(0.01)


def in_thread(act: Callable[[], object]) -> tuple[threading.Thread, list[BaseException]]:
    raised: list[BaseException] = []

    def run() -> None:
        try:
            act()
        except Exception as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, raised
