"""The process in which a handler runs: ``python -m sparkwriter.function.child DESCRIPTOR``.

It ends when its parent does. What the handler prints goes to standard error.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import signal
import sys
import traceback
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from types import ModuleType
from typing import Any

from settings.counted import counted
from sparkwriter.function.calls import (
    Apply,
    AskMarks,
    Call,
    CallDone,
    Carry,
    CountedRows,
    Raised,
    Started,
    StartHandler,
)
from sparkwriter.function.context import Context

_PR_SET_PDEATHSIG = 1
_LINES = 6
"""Of a traceback: enough to find the handler's line."""


class NotUsable(Exception):
    """The entry can't be loaded, or lacks a required member: one line."""


class Handler:
    """The user's module."""

    def __init__(self, start: StartHandler) -> None:
        """Raises NotUsable."""
        sys.path[:0] = start.path
        name, _, function = start.entry.partition(":")
        try:
            module = importlib.import_module(name)
        except Exception as error:
            raise NotUsable(f"{start.entry} can't be imported: {_told(error)}") from error
        self._apply = _function(module, function)
        if self._apply is None:
            raise NotUsable(f"{start.entry}: module {name} has no function {function}")
        self._statement = _function(module, "statement")
        self._done_through = _function(module, "done_through")
        self._settings: Mapping[str, Any] = start.settings

    @property
    def started(self) -> Started:
        """What it has."""
        return Started(self._statement is not None, self._done_through is not None)

    def answer(self, call: Call) -> CallDone | Raised:
        """Carry a call out. A row that could not be given up fails it, whatever came after."""
        context = Context(call.about, self._settings, isinstance(call, Apply))
        try:
            done = self._carried_out(call, context)
        except Exception as error:
            done = Raised(_told(error))
        context.close()
        return Raised(context.refused, lasting=True) if context.refused else done

    def _carried_out(self, call: Call, context: Context) -> CallDone | Raised:
        match call:
            case Apply(_, file):
                return self._applied(context, file, call.about.keys)
            case Carry(_, kind, to):
                if self._statement is None:
                    return Raised(f"it has no function `statement` for {kind}", lasting=True)
                self._statement(context, kind, None if to is None else str(to))
            case AskMarks():
                assert self._done_through is not None
                return _marks_of(self._done_through(context))
        return CallDone()

    def _applied(self, context: Context, file: str, keys: tuple[str, ...]) -> CallDone | Raised:
        assert self._apply is not None
        rows = CountedRows(file, keys)
        self._apply(rows.reader, context)
        if rows.left:
            text = f"it returned with {counted(rows.left, 'row')} of the batch unread"
            return Raised(text, lasting=True)
        return CallDone(rejected=context.rejected)


def _marks_of(given: object) -> CallDone | Raised:
    """What ``done_through`` gave, as a plain text: the parent can't read the handler's classes."""
    if given is None or isinstance(given, str):
        return CallDone(marks=None if given is None else str.__str__(given))
    text = f"done_through gave a {type(given).__name__}, which is no context.marks"
    return Raised(text, lasting=True)


def _function(module: ModuleType, name: str) -> Callable[..., Any] | None:
    found = getattr(module, name, None)
    return found if callable(found) else None


def _told(error: Exception) -> str:
    lines = traceback.format_exception(error)[-_LINES:]
    return " ".join("".join(lines).split())


def main() -> None:
    """Serve the parent until it is gone."""
    parent = os.getppid()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before the call above
        return
    # A signal to the group (Ctrl-C) is the parent's: it drains, and then ends this process.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    os.dup2(2, 1)
    pipe, own = Connection(int(sys.argv[1])), os.getpid()

    def send(answer: object) -> None:
        if os.getpid() != own:
            # A copy that the handler forked and that came back out of it: a second answer would be
            # taken for that to the next call.
            os._exit(1)
        pipe.send(answer)

    try:
        try:
            handler = Handler(pipe.recv())
        except NotUsable as error:
            send(Raised(str(error), lasting=True))
            return
        send(handler.started)
        while True:
            send(handler.answer(pipe.recv()))
    except (EOFError, ConnectionError):
        return


if __name__ == "__main__":
    main()
