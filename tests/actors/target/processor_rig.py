"""One processor's logic with real decoding in memory, and a sink of a few lines."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.addresses import WRITERS, Address
from actors.contract.raw_messages import Messages
from actors.contract.writes import StagedBatch, TargetState
from actors.runtime.effect_handlers import ProcessorEffects
from actors.staging.work import StageWork
from actors.target.rule import ProcessorLogic
from actors.target.settings import OpenSpill
from changes.formats import FORMATS
from changes.model.model import OP, FormatOptions, Mode, TableName, TruncateTable
from changes.routes.routing import Route, Router
from daemon.state.spills.file import SpillFolder
from daemon.state.spills.spills import PipelineSpills, open_spills
from offsets.position import NO_OFFSET, TopicPartition, still_open
from offsets.recovery import Watermarks
from offsets.snapshot import SpillMark, TargetMark, noted
from sources.base.port import LogRecord
from tests.actors.settings import settings_of

S0 = TopicPartition("binlog", 0)
ME = Address("p", "processor")
COMMITTER = Address("p", "committer")
LETTERS = Address("p", "dead-letters")
SUPERVISOR = Address("p", "supervisor")
ROUTES = (Route(("*",), (), "lake.{database}.{table}", Mode.UPSERT, None),)


def canal(table: str, key: object, name: str | None = None, **more: Any) -> bytes:
    """An INSERT of one row (``key`` None: a row without its key, which can't be applied)."""
    row = {"name": name} if key is None else {"id": str(key), "name": name}
    return json.dumps(
        {
            "database": "db", "table": table, "type": "INSERT", "isDdl": False, "es": 1, "ts": 2,
            "pkNames": ["id"], "mysqlType": {"id": "int(11)", "name": "varchar(9)"},
            "sqlType": {"id": 4, "name": 12}, "data": [row], "old": None, "sql": "",
        } | more
    ).encode()  # fmt: skip


class MemoryTables:
    """Staged tables, kept in memory."""

    def __init__(self) -> None:
        self.held: dict[str, pa.Table] = {}

    def read(self, path: str) -> pa.Table:
        return self.held[path]

    def write(self, path: str, table: pa.Table) -> int:
        self.held[path] = table
        return int(table.nbytes)


class ProcessorRig:
    """Feeds a processor and carries out what it asks for; writes wait until they are let through.

    ``told`` is what it said to others, in order.
    """

    def __init__(
        self,
        state_dir: Path | None = None,
        format_name: str = "canal-json",
        routes: Sequence[Route] = ROUTES,
        **settings: Any,
    ) -> None:
        self.routes = routes
        self.now = 0.0
        self._format_name = format_name
        self.state_dir = state_dir
        self.log: dict[int, bytes] = {}
        self.listed: dict[str, SpillMark] = {}
        self.recorded: dict[str, TargetMark] = {}
        self.begins = 0
        self.unrecorded = False
        self.adopted: int | None = None
        self.disk_full = False
        self.held = False
        self.tables = MemoryTables()
        self.told: list[tuple[Address, Any]] = []
        self.logs: list[fx.Log] = []
        self.work: deque[Any] = deque()
        self.states: dict[str, TargetState] = {}
        self.rows: dict[str, dict[Any, Any]] = {}
        self.written: list[StagedBatch] = []
        self.owners: dict[str, TableName] = {}
        self.refusing: dict[str, str] = {}
        self.failing: dict[str, msg.FailureKind] = {}
        self.waits: dict[str, str] = {}
        """Whose writes wait, in a renaming, for what is in another one's spill."""
        self.epoch = 1
        self._paths = 0
        self._settings = {"batch_age_s": 0.1} | settings
        self.start()

    def start(self) -> None:
        """A process begins: nothing is left of an earlier one but the sink."""
        make = FORMATS[self._format_name](FormatOptions())
        self.router = Router(self.routes)
        self.work.clear()
        self.told.clear()
        self._stager = StageWork(make, self.tables)
        open_: list[OpenSpill] = []
        if self.state_dir is not None:
            folder = SpillFolder(self.state_dir, "p")
            open_, _ = open_spills(folder.found(self.listed), make, self.router)
            spills = PipelineSpills(folder, self, make, self.router)  # type: ignore[arg-type]
            self._spills = ProcessorEffects(self._stager, spills)  # type: ignore[arg-type]
        settings = settings_of(**self._settings)
        self.logic = ProcessorLogic(
            ME, make, self.router, settings, "run", lambda: 0.0, open_, self.recorded
        )

    def read(self, source: TopicPartition, first: int, last: int) -> Iterator[LogRecord]:
        """The log, for what is no more in memory."""
        for offset in range(first, last + 1):
            if offset in self.log:
                yield LogRecord(offset, None, self.log[offset], (), None)

    # --- in

    def send(
        self,
        table: str,
        *messages: tuple[int, bytes],
        ddl: bool = False,
        source: TopicPartition = S0,
    ) -> None:
        """A fetched batch of one table."""
        (route,) = self.router.targets(_name(table))
        self.log.update(messages)
        offsets, values = [o for o, _ in messages], [v for _, v in messages]
        owner = None if ddl else self.router.owner(_name(table), route.name)
        size = sum(map(len, values))
        share = msg.Share(route, Messages(offsets, values, size), ddl, owner)
        log = Watermarks(0, max(self.log) + 1)
        fetched = self.epoch, source, (share,), size, log
        known = self.begins, self.unrecorded, self.adopted
        self.feed(msg.RecordBatch(*fetched, *known))

    def feed(self, message: object) -> list[object]:
        """One message; gives the replies to it."""
        replies: list[object] = []
        waiting = deque([message])
        while waiting:
            for effect in self.logic.handle(waiting.popleft(), self.now):
                answer = self.carry_out(effect, replies)
                if answer is not None:
                    waiting.append(answer)
        return replies

    def tick(self, seconds: float = 1.0) -> None:
        """Time passes."""
        self.now += seconds
        from actors.runtime.mailbox import Tick

        self.feed(Tick())

    def settle(self) -> None:
        """Time passes and writes end until nothing is left to do."""
        for _ in range(20):
            self.tick()
            while self.work:
                self.write()

    # --- out

    def carry_out(self, effect: object, replies: list[object]) -> object | None:
        match effect:
            case fx.Tell(to, message):
                if isinstance(message, msg.SpillListed):
                    self._list(message)
                (self.work.append(message) if to == WRITERS else self.told.append((to, message)))
                return message if to == ME else None
            case fx.Stage():
                self._paths += 1
                return self._stager.stage(effect, f"staged-{self._paths}")
            case fx.Spill(target) if self.disk_full:
                return msg.SpillFailed(target, "disk full")
            case fx.Spill() | fx.ReadSpill() | fx.EndSpill():
                return self._spills(effect)
            case fx.Reply(value):
                replies.append(value)
            case fx.Log():
                self.logs.append(effect)
            case fx.Hold(hold):
                self.held = hold
            case fx.WakeAt() | fx.RemoveStaged():
                pass
            case _:
                raise TypeError(effect)
        return None

    def write(self) -> None:
        """Let the oldest request to the writers end."""
        request = self.work.popleft()
        target = request.target if isinstance(request, msg.OpenTarget) else request.batch.target
        name = str(target)
        if name in self.refusing and isinstance(request, msg.WriteBatch):
            kind = msg.FailureKind.REFUSED
            self.feed(msg.Failed(target, kind, self.refusing[name]))
        elif self.waits.get(name) in self.listed and isinstance(request, msg.WriteBatch):
            (other,) = self.router.targets(_name(self.waits[name].rpartition(".")[2]))
            why = f"waits until {other.name} has its name"
            self.feed(msg.Failed(target, msg.FailureKind.WAITS, why, other.name))
        elif name in self.failing:
            self.feed(msg.Failed(target, self.failing[name], "not now"))
        elif isinstance(request, msg.WriteBatch) and self._is_anothers(name, request):
            why = f"{self.owners[name]} and {request.batch.table}"
            self.feed(msg.Failed(target, msg.FailureKind.REFUSED, why))
        elif isinstance(request, msg.OpenTarget):
            self.feed(msg.Opened(target, self.states.get(name, TargetState())))
        else:
            self._publish(name, request)

    def _is_anothers(self, name: str, request: msg.WriteBatch) -> bool:
        """Whether the batch is of another table than the target, as the lake keeps it."""
        table = request.batch.table
        return table is not None and self.owners.setdefault(name, table) != table

    def _publish(self, name: str, request: msg.WriteBatch) -> None:
        batch, held = request.batch, self.states.get(name, TargetState())
        for source, span in batch.lanes.items():
            assert held.hwms.get(source, NO_OFFSET) == span.after
        if batch.step is not None:
            shown = held.steps.get(S0)
            assert batch.begun == (0 if shown is None else shown.done)
        self.written.append(batch)
        rows = self.rows.setdefault(name, {})
        empty = not rows
        if any(isinstance(step, TruncateTable) for steps in batch.ddl for step in steps):
            rows.clear()
        if batch.path is not None:
            for row in self.tables.held[batch.path].to_pylist():
                if batch.mode is Mode.APPEND:
                    rows[row["_offset"], row["_index"]] = row.get("name")
                    continue
                key = tuple(row[column] for column in batch.schema.keys)
                if row[OP] == "D":
                    rows.pop(key, None)
                else:
                    rows[key] = row.get("name")
        hwms = {**held.hwms, **{s: span.through for s, span in batch.lanes.items()}}
        amid = dict.fromkeys(batch.lanes, batch.step) if batch.amid and batch.step else {}
        steps = still_open({**held.steps, **amid}, hwms)
        doubts = (doubt.what for doubt in batch.doubts if doubt.amid or not empty)
        mark = noted(held.rows_may_differ, doubts)
        state = TargetState(batch.schema, batch.mode, hwms, "v", None, steps, rows_may_differ=mark)
        self.states[name] = state
        if batch.becomes is not None:
            self.owners[name] = batch.becomes
        written = msg.Written(batch.target, request.epochs, request.through, state, batch.changes)
        self.told.append((COMMITTER, written))
        self.feed(written)

    def logged(self, event: str) -> list[Any]:
        """What the log says of one kind of event."""
        return [entry.fields["what"] for entry in self.logs if entry.event == event]

    def _list(self, listed: msg.SpillListed) -> None:
        """The offset file, as the committer would save it at once."""
        if listed.mark is None:
            self.listed.pop(listed.target, None)
        else:
            self.listed[listed.target] = listed.mark

    def heard(self, kind: type) -> list[Any]:
        """What was said of one kind, to anybody."""
        return [message for _, message in self.told if isinstance(message, kind)]

    def done(self, target: str) -> int:
        """How far the committer was told that a target's lane is done."""
        told = (w.through for w in self.heard(msg.Written) if str(w.target) == target)
        ends = [through[S0] for through in told if S0 in through]
        return max(ends, default=NO_OFFSET)


def _name(table: str) -> TableName:
    return TableName("db", table)
