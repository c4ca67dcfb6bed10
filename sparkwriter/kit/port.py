"""What the daemon asks of a configured sink, whatever its kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from actors.contract.ports import ResettableSink
from changes.model.model import TargetName
from changes.routes.routing import Route
from databases.base.database import Database
from sparkwriter.kit.queries import Queries
from sparkwriter.kit.readers import HowToRead
from sparkwriter.session.section import SparkSection

if TYPE_CHECKING:
    from sparkwriter.session.jvm import SparkJvm
    from sparkwriter.session.living_sink import SessionSink


class Sessions(Protocol):
    """The Spark session, for sinks that write with it."""

    def now(self) -> SparkJvm:
        """The one that lives. Main thread, at the start."""
        ...

    @property
    def shared_staging(self) -> str | None:
        """The URI of a folder to copy staged files to for executors; None where they see this
        machine's disk."""
        ...

    def sink(
        self,
        make: Callable[[SparkJvm], SessionSink],
        timeout_s: float,
        outdated: Callable[[], bool],
    ) -> ResettableSink:
        """A sink that goes on in the next session when one has died, and is recreated where after
        a failure ``outdated`` says so. Any thread."""
        ...


class Exchanges(Protocol):
    """A sink's tables, for who asks whether one of them can be replaced. One thread's."""

    def in_the_way(self, target: TargetName, into: TargetName, aside: TargetName) -> Sequence[str]:
        """Why ``into`` could not be made and take the target's name, which goes ``aside``: rights,
        locks, what hangs on the table. One line each. Raises SinkUnavailable."""
        ...

    def left_behind(self, target: TargetName) -> Sequence[str]:
        """What of the target's table one that takes its name does not have: to be recreated by
        its maker. Raises SinkUnavailable."""
        ...

    def close(self) -> None:
        """Release it."""
        ...


class Sink(ABC):
    """One ``[sink.NAME]``. Called by the main thread unless it says otherwise. What a kind has
    nothing to say of is left as it is here."""

    def problems(self) -> Iterator[str]:
        """What can't be right, without trying it: keys below the section, one line each."""
        return iter(())

    def warnings(self, spark: SparkSection) -> Iterator[str]:
        """What is legal but unwise. Keys below the section, one line each."""
        return iter(())

    @property
    def single_writer(self) -> str | None:
        """Why only one daemon may write it, and what to do instead; None where several may."""
        return None

    def probe(self) -> bool:
        """Try what can be tried at once; whether that was all. Raises SinkUnavailable."""
        return False

    def catalog(self) -> Mapping[str, str] | None:
        """The catalog that Spark must know by the sink's name; None: it needs no Spark."""
        return None

    def keeps_names(self) -> str | None:
        """Why no table of it can take another's name, which ends a load; None where it can. It may
        ask what the sink is made of. Any thread."""
        return None

    def exchanges(self) -> Exchanges | None:
        """Its tables as they are now; None where nothing is known before they are exchanged. Any
        thread."""
        return None

    def database(self) -> Database | None:
        """A connection that reads its tables, for who compares them: a target's namespace is the
        table's ``database``. None where they are no tables of a database that verification knows.
        Any thread. Raises DatabaseAway, DatabaseRefused."""
        return None

    def queries(self) -> Queries | None:
        """What answers queries over its tables; None where nothing can. Raises DatabaseAway,
        DatabaseRefused, NoAnswer."""
        return None

    def readers(self, target: TargetName) -> Iterator[HowToRead]:
        """How people read one of its tables with their own tools. Asks nobody."""
        return iter(())

    @abstractmethod
    def open(self, owner: str, sessions: Sessions | None) -> None:
        """Be ready to write. ``owner`` names this daemon among others that write the sink; without
        a catalog there may be no ``sessions``. Raises SinkUnavailable."""

    def try_out(self, sessions: Sessions | None, routes: Iterable[Route]) -> Iterator[str]:
        """For the check: open it, and try what the daemon will do. Leaves nothing. One line for
        each problem."""
        return iter(())

    def try_together(self, sessions: Sessions | None) -> Iterator[str]:
        """For the check, behind ``try_out``, where several tables are to change in one step: as
        ``try_out``."""
        return iter(())

    @abstractmethod
    def writer(self) -> ResettableSink:
        """A new one, for one thread. Any thread."""

    def prepare_stop(self) -> None:
        """A stop was requested: finish the writes and start no other work. Returns at once."""
        return
