"""A connection to a database server, in the words of jobs that read and of sinks that write."""

from __future__ import annotations

import os
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from databases.base.errors import Cause, DatabaseError, database_error
from databases.base.session_settings import POOLED, Server

CONNECT_WITHIN_S = 15


@dataclass(frozen=True, slots=True)
class Purpose:
    """What a session is for.

    ``settings``: its variables (``session_settings``), by the server. ``name`` begins each message.
    ``silence_s``: so long may the server say nothing; None: until the session is cut. ``help``:
    what gives the right that a statement lacked, by the server's message.
    """

    settings: Callable[[Server], Mapping[str, str]]
    name: str = ""
    silence_s: int | None = None
    help: Callable[[str], str] | None = None


class DatabaseSession(ABC):
    """One connection with binlogd's settings. One thread's, but for ``cut``. Every method raises
    DatabaseError; the next connection is another session."""

    purpose: Purpose
    mark: str
    """A text of the session's own: where the server has another, a pooler changed the session."""

    @abstractmethod
    def rows(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """What a query gives. A value's place is ``%s``; then a ``%`` is written twice."""

    @abstractmethod
    def run(self, sql: str, values: Sequence[object] = ()) -> int:
        """Run a statement; how many rows it found."""

    @abstractmethod
    def ask(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """The same as ``rows``, outside of a transaction: sees that it is in this session."""

    @abstractmethod
    def stream(self, sql: str, rows: int) -> Iterator[list[tuple[Any, ...]]]:
        """The rows of a SELECT in lists of about so many, as the server sends them; sees that it is
        in this session. A stream that is left before its end may end the session."""

    @abstractmethod
    def answer(self, sql: str, rows: int) -> Iterator[list[tuple[Any, ...]]]:
        """As ``stream``, for a statement of a person: the first list has one row, the columns'
        names. The server refuses more than one statement."""

    @abstractmethod
    def begin(self) -> None:
        """Begin a transaction; sees that it is in this session."""

    @abstractmethod
    def commit(self) -> None:
        """End a transaction; when it returns the server has it durably."""

    @abstractmethod
    def is_writable(self) -> bool:
        """Whether the server is no replica, and not made read-only."""

    @property
    @abstractmethod
    def is_open(self) -> bool:
        """Whether it has not ended."""

    @abstractmethod
    def close(self) -> None:
        """End it. Raises nothing."""

    @abstractmethod
    def wire(self) -> int:
        """The number of its socket. Raises OSError or AttributeError where there is none."""

    def cut(self) -> None:
        """Break the connection under a call that waits. Any thread; raises nothing."""
        try:
            with socket.socket(fileno=os.dup(self.wire())) as wire:
                wire.shutdown(socket.SHUT_RDWR)
        except (OSError, AttributeError):
            return  # it has ended already

    def check_mark(self, found: Sequence[Sequence[object]]) -> None:
        """Raise DatabaseError where another session answered."""
        if [*map(tuple, found)] != [(self.mark,)]:
            raise self.error(Cause.SERVER, POOLED)

    def error(self, cause: Cause, text: str) -> DatabaseError:
        """An error of this session."""
        return database_error(cause, f"{self.purpose.name}: {text}" if self.purpose.name else text)


@contextmanager
def transaction(session: DatabaseSession) -> Iterator[None]:
    """Commit what is done inside, or roll it back."""
    session.begin()
    try:
        yield
        session.commit()
    except BaseException as error:
        if not (isinstance(error, DatabaseError) and error.ends_session):
            session.run("ROLLBACK")
        raise
