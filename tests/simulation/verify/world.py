"""A verification that repairs, driven between the acts of a pipeline and of its database."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from actors.contract import messages as msg
from actors.contract.writes import StagedBatch
from changes.model.errors import SinkUnavailable, TargetRefused, WaitsForRows
from changes.model.model import Column, Mode, TableName, TableSchema, TargetName
from daemon.operations.engine.source_watermarks import frontiers_of
from daemon.operations.verify import compare, groups
from daemon.operations.verify.in_flight import KeyLooks, NotPassed, looked
from daemon.operations.verify.in_flight_here import not_following
from daemon.operations.verify.key_texts import Trail, follow
from daemon.operations.verify.repair_story import (
    Ready,
    Written,
    calm_keys,
    made_ready,
    places,
    stands_behind,
    written,
)
from daemon.operations.verify.work import Table
from daemon.state.edits import EditFailed, EditRefused
from databases.base.errors import DatabaseAway
from databases.base.port import Key
from offsets.fence import Fenced, Span, of_streams
from offsets.position import NO_OFFSET, repair_lane
from offsets.snapshot import Snapshot
from tests.simulation.durable import PIPELINE
from tests.simulation.loads.durable import LoadDurable
from tests.simulation.loads.world import Driver, LoadWorld
from tests.simulation.rows import Net
from tests.simulation.source import target_of
from tests.simulation.verify.follower import SimFollower, log_changes
from tests.simulation.verify.plant import Plants
from tests.simulation.verify.sides import MovingSide, PartitionRead

AWAY = (SinkUnavailable, DatabaseAway, EditFailed)


class VerifyDriver(Driver):
    """Lives after lives, a verification of one table beside them, and a second member of the group
    that may have the partitions while the pipeline stands."""

    def __init__(
        self, durable: LoadDurable, rng: random.Random, faults: dict[str, Any], crashes: int,
        plants: Plants, partition: PartitionRead | None = None,
    ) -> None:  # fmt: skip
        super().__init__(durable, rng, ["t0"], faults, crashes=crashes)
        self.plants, self.partition = plants, partition
        self.table = Table(0)
        self.target = target_of("t0")
        self.repaired: set[Key] = set()
        self.refused: dict[Key, str] = {}
        self._standing = False
        self._quiet = rng.random() < 0.7
        self._other = replace(durable, snapshot=Snapshot(PIPELINE, "g"), _checked={})
        self._other.spills = type(durable.spills)()

    # --- the job

    def _step(self) -> None:
        if self.target not in self.durable.sink.tables:
            self._due = self.durable.now + 0.3
            return
        # Either the database goes on, or it does so while the pipeline stands: then rows that were
        # calm all the time change at that moment.
        self.durable.clockwork.rests = self._quiet
        self.plants.plant(self.durable, self.target, self.rng)
        self.trace.append(f"{self.durable.now:.3f} step {self.table}")
        try:
            table = self._advanced()
        except AWAY as error:
            self.trace.append(f"{self.durable.now:.3f} away: {error}")
            self.counts["away"] += 1
            self._due = self.durable.now + 0.1
            return
        self.durable.clockwork.rests &= self.ended is None
        self._crash(0.05)  # before it is remembered
        self.table = Table.of(table.document())
        self._due = self.durable.now + 0.01

    def _advanced(self) -> Table:
        table, follower = self.table, self._follower()
        if table.is_compared:
            self._repair()
            self.ended = "done"
            return table
        if (why := not_following(self.durable.snapshot, self.target)) is not None:
            self.ended = why
            return replace(table, left=(), undecided=(((), why),))
        if table.left is None:
            return self._first(table, follower)
        if table.left:
            left, keys = compare.advanced(*self._sides(), table.left)
            seen = looked(keys, follower) if keys else KeyLooks()
            return self._with(replace(table, left=tuple(left)), seen)
        assert table.trail is not None
        trail, seen = follow(table.trail, follower)
        self.counts["followed"] += len(trail.watched or ())
        return self._with(replace(table, trail=trail), seen)

    def _first(self, table: Table, follower: SimFollower) -> Table:
        begins = follower.begins()
        source, target = self._sides()
        _, intervals = source.grid()
        sides = [(target, "target"), (source, "source")]
        self.rng.shuffle(sides)
        sums = {name: side.sums(intervals, 0) for side, name in sides}
        left = groups.differing(intervals, 0, sums["source"], sums["target"])
        return replace(table, left=tuple(left), trail=Trail(begins))

    def _with(self, table: Table, seen: KeyLooks) -> Table:
        known = {*table.found, *(key for key, _ in table.undecided)}
        found = [each.key for each in seen.differing if each.key not in known]
        self.counts["undecided"] += len(seen.undecided)
        self.counts["differing"] += len(found)
        return replace(
            table,
            found=(*table.found, *found),
            undecided=(*table.undecided, *seen.undecided.items()),
        )

    # --- the repair

    def _repair(self) -> None:
        if not self.table.found:
            return
        assert self.table.trail is not None
        try:
            ready = made_ready(self.table.found, self.table.trail.at, self._follower())
            self.edit(PIPELINE, lambda snapshot: self._edited(snapshot, ready))
        except (NotPassed, EditRefused):
            self.counts["not repaired"] += 1

    def _edited(self, snapshot: Snapshot, ready: Ready) -> Snapshot:
        self._standing = True
        try:
            if (why := not_following(snapshot, self.target)) is not None:
                raise EditRefused(why)
            marks = of_streams(self.durable.sink.marks(self.target))
            at = places(ready, frontiers_of(snapshot), marks)
            if stands_behind(ready, at):
                raise EditRefused("went back")
            follower = self._follower()
            keys = calm_keys(ready, at, follower)
            before = follower.target(keys)
            wrong = [key for key in keys if before.get(key) != ready.rows[key]]
            self._settle(keys, self._written(wrong, ready, dict(marks)))
        except Fenced as error:
            self.counts["fenced"] += 1
            raise EditRefused(str(error)) from error
        finally:
            self._standing = False
        return snapshot

    def _settle(self, keys: Sequence[Key], ended: Written) -> None:
        self.repaired = {*keys} - {*ended.refused, *ended.left}
        self.refused = ended.refused
        self.counts["repaired"] += len(ended.done)
        self.counts["left out"] += len(self.table.found) - len(keys)
        self.counts["refused"] += len(ended.refused)

    def _written(self, wrong: Sequence[Key], ready: Ready, marks: dict[Any, int]) -> Written:
        columns = self._columns()
        schema = TableSchema(
            (Column("id", pa.string()), *(Column(name, pa.string()) for name in columns)), ("id",)
        )
        lanes = {lane: Span(at, at) for lane, at in marks.items()}
        own, number = repair_lane(f"verify-{self.rng.random()}"), NO_OFFSET

        def write(keys: Sequence[Key]) -> None:
            nonlocal number
            self._passing()
            if hated := self.plants.hated & set(keys):
                raise self.rng.choice((TargetRefused, WaitsForRows))(f"refused: {hated}")
            id_ = self.durable.shape.id
            nets = [_net((id_(key[0]),), ready.rows[key], columns) for key in keys]
            batch = StagedBatch(
                batch_id="repair", target=TargetName("lake", "s", "t0"), mode=Mode.UPSERT,
                schema=schema, lanes={**lanes, own: Span(number, number + 1)}, path="repair",
                rows=len(nets), changes=len(nets), has_deletes=True, table=TableName("s", "t0"),
            )  # fmt: skip
            self._write(batch, nets)
            number += 1

        return written(wrong, write)

    def edit(self, pipeline: str, change: Callable[[Snapshot], Snapshot]) -> None:
        """The pipeline drains for as long as it takes, and reads nothing any more. Meanwhile
        another member may have the partitions."""

        def later(snapshot: Snapshot) -> Snapshot:
            for _ in range(self.rng.choice((0, 100, 300))):
                self._stand()
            if self.rng.random() < 0.3:
                self._hand_over()
            return change(snapshot)

        try:
            super().edit(pipeline, later)
        except (EditRefused, SinkUnavailable):
            self._live()
            raise

    def _stand(self) -> None:
        """The database and its log go on alone."""
        self.durable.now += 0.01
        self.durable.clockwork.rests = False
        self.durable.clockwork.turn(self.rng, self.durable.now)

    def _hand_over(self) -> None:
        """The group's other member reads and writes, and leaves with writes under way."""
        other = self._other
        other.now, other.committed, other.sink = (
            self.durable.now, self.durable.committed, self.durable.sink,
        )  # fmt: skip
        faults = {**self.faults, "refusals": 0}
        world = LoadWorld(other, self.rng, **faults)
        for _ in range(self.rng.choice((50, 500))):
            world.act()
        assert not [event for event in world.heard if isinstance(event, msg.PipelineFailed)]
        self.durable.now = max(self.durable.now, other.now)
        self.world._sink._zombies += world._sink._zombies
        self.counts["handed over"] += 1

    # --- what it takes

    def _passing(self) -> None:
        if not self._standing:
            super()._passing()
            return
        self._crash(0.03)
        for _ in range(self.rng.choice((0, 0, 3, 30))):
            self._stand()
            if self.rng.random() < 0.05:
                self.world._sink.land()

    def _columns(self) -> tuple[str, ...]:
        return self.durable.clockwork.version["t0"].columns

    def _sides(self) -> tuple[MovingSide, MovingSide]:
        columns = self._columns()
        source = MovingSide(
            lambda: self.durable.clockwork.version["t0"].rows, columns, self._passing,
            self.partition, source=True,
        )  # fmt: skip
        target = MovingSide(
            lambda: self.durable.sink.tables[self.target].shown(), columns, self._passing,
            self.partition,
        )  # fmt: skip
        return source, target

    def _follower(self) -> SimFollower:
        changes = log_changes(self.durable, "t0", self._columns())
        return SimFollower(
            self.durable, self.target, self._sides(), changes, self._passing,
            lambda: self.durable.snapshot,
        )  # fmt: skip


def _net(key: tuple[int | str], row: Sequence[str | None] | None, columns: Sequence[str]) -> Net:
    if row is None:
        return Net(key, None, None)
    return Net(key, {"id": key[0], **dict(zip(columns, row[1:], strict=True))}, None)
