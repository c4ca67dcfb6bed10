"""Random changes of one table, and the flow that brings them to a target: decode, shape, fold,
stage, write. Only the actors are left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from hypothesis import strategies as st

from actors.contract.effects import LaneMessages, Stage
from actors.contract.messages import Staged
from actors.contract.raw_messages import Messages
from actors.contract.writes import TargetState
from actors.staging.staged_tables import ParquetTables
from actors.staging.work import StageWork
from actors.target.batching import rows_batch
from changes.formats import FORMATS
from changes.model.model import FormatOptions, Mode, TableName, TargetName
from changes.routes.routing import TargetRoute
from changes.routes.shaping.shape import Shape
from offsets.fence import Span
from offsets.position import NO_OFFSET, TopicPartition
from offsets.snapshot import MarkMoves
from sparkwriter.kit.writer import TargetWriter

SOURCE = TopicPartition("shop", 0)
TABLE = TableName("shop", "users")
TYPES = {"id": "int(11)", "n": "int(11)", "phone": "varchar(20)", "note": "varchar(40)"}
SALT = "a salt of many characters"

Row = dict[str, Any]
Rows = dict[int, Row]
Texts = dict[str, str | None]


class Change(NamedTuple):
    """One change, as it was drawn. ``new``: the key afterwards, where it changes."""

    kind: str
    key: int
    new: int
    row: Row
    names: tuple[str, ...]


def changes() -> st.SearchStrategy[list[Change]]:
    """Changes of few keys, so that one is often changed, deleted and recreated."""
    keys = st.integers(0, 6)
    row = st.fixed_dictionaries(
        {
            "n": st.none() | st.integers(-5, 5),
            "phone": st.none() | st.text("0123456789", max_size=6),
            "note": st.none() | st.sampled_from(["", "x", "späße", "a'b", "*"]),
        }
    )
    names = st.lists(st.sampled_from(["n", "phone", "note"]), min_size=1, unique=True)
    return st.lists(
        st.builds(Change, st.sampled_from("IIUUDM"), keys, keys, row, names.map(tuple)),
        min_size=1,
        max_size=25,
    )


class Source:
    """The table at the source. ``minimal``: updates carry the key and what changed."""

    def __init__(self, minimal: bool, table: TableName = TABLE) -> None:
        self.rows: Rows = {}
        self._minimal = minimal
        self.clock_s = 0
        """When the last change happened."""
        self._table = table

    def message(self, change: Change) -> bytes | None:
        """Make the change; its message, None where it can't be made."""
        rows, key = self.rows, change.key
        if change.kind == "I":
            if key in rows:
                return None
            rows[key] = dict(change.row)
            return self._message("INSERT", [_text(key, rows[key])])
        if key not in rows:
            return None
        if change.kind == "D":
            return self._message("DELETE", [_text(key, rows.pop(key))])
        new = change.new if change.kind == "M" and change.new not in rows else key
        before = rows.pop(key)
        changed = {name: change.row[name] for name in change.names}
        rows[new] = {**before, **changed}
        old = _text(key, {name: before[name] for name in changed})
        if new == key:
            del old["id"]
        shown = changed if self._minimal else rows[new]
        return self._message("UPDATE", [_text(new, shown)], [old])

    def _message(self, kind: str, data: list[Texts], old: list[Texts] | None = None) -> bytes:
        database, table = self._table
        body = {"database": database, "table": table, "type": kind, "isDdl": False}
        self.clock_s += 1
        times = {"es": 1000 * self.clock_s, "ts": 1}
        columns = {"mysqlType": TYPES, "pkNames": ["id"]}
        return msgspec.json.encode({**body, **columns, "data": data, "old": old, **times})


def _text(key: int, row: Row) -> Texts:
    texts = {name: None if value is None else str(value) for name, value in row.items()}
    return {"id": str(key), **texts}


def route_of(
    shape: Shape, mode: Mode = Mode.UPSERT, options: Iterable[tuple[str, str]] = ()
) -> TargetRoute:
    """A route of the table."""
    target = TargetName("lake", "shop", "users")
    return TargetRoute(target, mode, None, (), tuple(options), shape)


@dataclass
class Flow:
    """Brings messages to a target, in batches of random sizes, by members that come and go."""

    route: TargetRoute
    folder: Path
    writer: Callable[[], TargetWriter[Any]]
    state: TargetState = field(default_factory=TargetState)
    refused: str | None = None
    table: TableName | None = TABLE
    """Whose rows they are, None of several tables."""
    format: str = "canal-json"
    now_s: float = 0.0
    _files: int = 0
    _through: int = NO_OFFSET

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Another process goes on."""
        names = {"default_database": TABLE.database, "default_table": TABLE.table}
        format_ = FORMATS[self.format](FormatOptions(extra=names))
        self._work = StageWork(format_, ParquetTables(), lambda: self.now_s)
        self._sink = self.writer()
        self.state = self._sink.open(self.route.name)
        self._told = False

    def reset(self, first: int) -> None:
        """The messages from this one on are to be read again."""
        self._sink.reset(self.route.name, MarkMoves(lower={SOURCE: first - 1}))
        self._through = first - 1
        self.restart()

    def write(self, first: int, values: Sequence[bytes], *, behind: bool = False) -> Staged:
        """Bring some messages: at once, or the first of them staged before the rest (``behind``).

        Each write is tried twice, as after a reply that was lost. A message that can't be read is
        a refusal, too.
        """
        cut = len(values) // 2 if behind else 0
        files: tuple[str, ...] = ()
        if cut:
            piece = self._stage(first, values[:cut], ())
            if piece.refused is not None:
                self.refused = piece.refused
                return piece
            files = () if piece.path is None else (piece.path,)
        staged = self._stage(first + cut, values[cut:], files)
        if staged.refused is not None:
            self.refused = staged.refused
            return staged
        through = first + len(values) - 1
        if staged.path is not None:
            lanes = {SOURCE: Span(self._through, through)}
            batch = rows_batch(str(self._files), self.route, staged, lanes, self.table)
            batch = replace(batch, shape=self.route.shape.fingerprint)
            self.state = self._sink.write(batch)
            assert self._sink.write(batch).covered
            self._through = through
        return staged

    def _stage(self, first: int, values: Sequence[bytes], files: tuple[str, ...]) -> Staged:
        self._files += 1
        path = str(self.folder / f"{self._files}.parquet")
        offsets = list(range(first, first + len(values)))
        lanes = (LaneMessages(SOURCE, Messages.of(offsets, list(values))),) if values else ()
        stored = None if self._told else self.state.schema
        self._told = True
        staged = self._work.stage(Stage(self.route, files, lanes, 0, stored), path)
        assert isinstance(staged, Staged)
        return replace(staged, refused=staged.bad.reason) if staged.bad is not None else staged


def bring(flow: Flow, source: Source, made: Sequence[Change], cuts: Sequence[int]) -> None:
    """Make the changes and bring them, as ``bring_messages``."""
    values = [value for change in made if (value := source.message(change)) is not None]
    bring_messages(flow, values, cuts)


def bring_messages(flow: Flow, values: Sequence[bytes], cuts: Sequence[int]) -> None:
    """Bring messages in batches; ``cuts`` says of each batch how large it is, whether some of it
    was staged before, and whether another process begins with it."""
    at, number = 0, 0
    while at < len(values) and flow.refused is None:
        cut = cuts[number % len(cuts)] if cuts else 3
        if cut % 3 == 0 and number:
            flow.restart()
        flow.write(at, values[at : at + 1 + cut], behind=cut % 2 == 1)
        at, number = at + 1 + cut, number + 1
