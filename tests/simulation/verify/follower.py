"""What the looks ask, over the simulated database, log and sink."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial

from changes.formats import make_format
from changes.formats.engine.format import Packed, unpack
from changes.model.model import TableName
from changes.routes.routing import Router
from changes.sql.forms import Form
from daemon.operations.engine.source_watermarks import behind, frontiers_of
from daemon.operations.load.columns import FittedTable
from daemon.operations.verify.columns import Pair
from daemon.operations.verify.in_flight import Ends, NotPassed
from daemon.operations.verify.in_flight_here import not_following
from daemon.operations.verify.key_texts import Move, keys_of, moves_of
from daemon.operations.verify.log_changes import LogChanges
from databases.base.port import Key, SourceColumn, SourceTable, Texts
from databases.streamed import StreamedColumn
from offsets.position import TopicPartition
from offsets.snapshot import Snapshot
from sources.base.port import LogRecord
from tests.simulation.cast import routes
from tests.simulation.loads.durable import LoadDurable
from tests.simulation.source import target_of
from tests.simulation.verify.sides import MovingSide

MOST_WAITS = 3000
"""Passings of time, before something is taken never to come."""


class LogReader:
    """``sources.base.port.Reader`` over the simulated log."""

    def __init__(self, durable: LoadDurable) -> None:
        self._durable = durable

    def read(self, source: TopicPartition, first: int, last: int) -> Iterator[LogRecord]:
        for offset, value in self._durable.log[source]:
            if first <= offset <= last:
                record = unpack(value) if self._durable.shape.keyed else Packed(None, value)
                yield LogRecord(offset, record.key, record.value, tuple(record.headers), None)


def log_changes(durable: LoadDurable, name: str, columns: Sequence[str]) -> LogChanges:
    """The daemon's own reading of the log."""
    key = SourceColumn("id", "int", nullable=False, form=Form.WHOLE)
    others = [SourceColumn(column, "varchar(20)", True, Form.TEXT) for column in columns]
    table = SourceTable(TableName("s", name), (key, *others), ("id",), 0, 0, "")
    router = Router(routes(durable.shape.route))
    (route,) = (r for r in router.targets(table.name) if str(r.name) == target_of(name))
    streamed = (StreamedColumn(key, "int"), *(StreamedColumn(each, "string") for each in others))
    wanted = FittedTable(table, streamed, route, ("id",), None)
    pairs = (Pair(key, "id", "int"),)
    return LogChanges(
        make_format(durable.shape.format, durable.shape.options),
        router,
        LogReader(durable),  # type: ignore[arg-type]
        target_of(name),
        partial(keys_of, keys=pairs, wanted=wanted),
        partial(moves_of, keys=pairs, wanted=wanted),
    )


class SimFollower:
    """``moves.Follower``."""

    def __init__(
        self,
        durable: LoadDurable,
        target: str,
        sides: tuple[MovingSide, MovingSide],
        changes: LogChanges,
        passing: Callable[[], None],
        snapshot: Callable[[], Snapshot],
    ) -> None:
        self._durable = durable
        self._target = target
        self._source, self._stored = sides
        self._changes = changes
        self._passing = passing
        self._snapshot = snapshot

    def source(self, keys: Sequence[Key]) -> Mapping[Key, Texts]:
        return self._source.rows(keys)

    def target(self, keys: Sequence[Key]) -> Mapping[Key, Texts]:
        return self._stored.rows(keys)

    def begins(self) -> Ends:
        """By when each message came to the log."""
        self._passing()
        clockwork, log = self._durable.clockwork, self._durable.log
        calm_s = self._durable.now - clockwork.margin_s
        found = {}
        for source in log:
            mine = [at for at, where in enumerate(clockwork.history.commits) if where == source]
            early = sum(clockwork.seen_at.get(at, 1e9) <= calm_s for at in mine)
            end = clockwork.end(source)
            found[source] = min(end, log[source][early][0] if early < len(mine) else end)
        return found

    def rest(self) -> None:
        until_s = self._durable.now + self._durable.clockwork.margin_s
        for _ in range(MOST_WAITS):
            if self._durable.now >= until_s:
                return
            self._passing()

    def passed(self, begins: Ends) -> Ends:
        clockwork = self._durable.clockwork
        # A message that is in the log was made before now, also one that no read sees yet.
        commit = clockwork.position
        for _ in range(MOST_WAITS):
            found = {source: self._after(source, commit) for source in self._durable.log}
            ends = {source: at for source, at in found.items() if at is not None}
            if len(ends) == len(found):
                return ends
            self._passing()
        raise NotPassed("the log stands")

    def _after(self, source: TopicPartition, commit: int) -> int | None:
        """A later message, or a heartbeat behind all that came before."""
        clockwork = self._durable.clockwork
        early = clockwork.history.commits[:commit].count(source)
        if clockwork.logged.get(source, 0) == early:
            return clockwork.end(source)
        return clockwork.after(source, lambda at: at >= commit)

    def settled(self) -> Ends:
        return self.passed({})

    def held(self, ends: Ends) -> None:
        for _ in range(MOST_WAITS):
            snapshot = self._snapshot()
            if (why := not_following(snapshot, self._target)) is not None:
                raise NotPassed(why)
            if not behind(ends, frontiers_of(snapshot)):
                return
            self._passing()
        raise NotPassed("the pipeline stands")

    def changed(self, keys: Collection[Key], begins: Ends, ends: Ends) -> Collection[Key]:
        self._passing()
        return self._changes.among(keys, begins, ends)

    def moves(self, begins: Ends, ends: Ends) -> Sequence[Move]:
        self._passing()
        return self._changes.moves(begins, ends)
