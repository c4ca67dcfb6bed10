"""A handler as a sink: rows go to the user's function, marks into a ledger of binlogd's own.

The function comes first, the marks after: what is applied again says the same. Where the handler
keeps the marks itself, beside its rows, a look asks it, and nothing is applied again.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import structlog

from actors.contract.writes import StagedBatch
from actors.runtime.files import private_opener
from changes.model.errors import SinkUnavailable, TargetRefused
from changes.model.model import TargetName
from changes.model.printable import json_text, printable
from offsets.fence import Marks
from settings.counted import counted
from sparkwriter.function.calls import Apply, AskMarks, CallContext, CallDone, Carry
from sparkwriter.function.ledger import HandlerLedger
from sparkwriter.function.process import HandlerProcess
from sparkwriter.kit.divergence import left_out
from sparkwriter.kit.marks_table.store import LedgeredStore
from sparkwriter.kit.marks_table.table_description import (
    Drop,
    Entry,
    Forgets,
    Operation,
    Remake,
    Rename,
    Row,
    Shows,
    TakeAbove,
    WriteRows,
)
from sparkwriter.kit.store import Absent, Capabilities, Delivery

GENERATION_BITS = 15
MOST_REJECTED_BYTES = 256 << 20
"""Of rejected rows that were not collected. The batch that passes it is still kept whole."""

OFFSET_BITS = 48
"""Of a version: so many messages of a target's partitions."""

log: Any = structlog.get_logger(__name__)


class HandlerStore(LedgeredStore):
    """``sparkwriter.kit.store.TableStore``. One writer's, on its thread."""

    def __init__(self, process: HandlerProcess, folder: Path) -> None:
        """``folder``: where ledger and rejected rows are kept."""
        self._process = process
        self._folder = folder
        self._ledger = HandlerLedger(folder)

    @property
    def capabilities(self) -> Capabilities:  # type: ignore[override]
        """A handler without ``statement`` can neither rename nor drop."""
        can = self._process.started().statements
        return Capabilities(
            Delivery.IDEMPOTENT, partial_rows=False, positions=False, rename=can, drop=can,
            read_rows=False, history=False,
        )  # fmt: skip

    def read_rows(self, seen: Row, keys: pa.Table, columns: Sequence[str]) -> pa.Table:
        """What a handler has stored, it alone knows."""
        raise TargetRefused("a handler's rows can't be read")

    @contextmanager
    def call(self, target: TargetName) -> Iterator[None]:
        """Errors name the target; the ledger's become the port's."""
        try:
            yield
        except sqlite3.Error as error:
            raise SinkUnavailable(f"{target}: {self._folder}: {error}") from error
        except TargetRefused as error:
            raise TargetRefused(f"{target}: {error}") from error

    def look(self, target: TargetName) -> Row | Absent:
        """The ledger's row, with the handler's own marks where it keeps them."""
        here = self._ledger.look(target)
        if not self._process.started().keeps_marks:
            return here
        text = self._process.call(AskMarks(self._about(target, here))).marks
        marks = Marks() if text is None else _parsed(text)
        return replace(here, marks=marks)

    def step(
        self,
        operations: Sequence[Operation],
        entries: Sequence[Entry],
        seen: Sequence[Row] = (),
        absent: TargetName | None = None,
    ) -> str:
        """The handler first, then the ledger."""
        self._ledger.check(seen, absent)
        shown = {entry.target: entry for entry in entries if isinstance(entry, Shows)}
        renamed: list[Rename] = []
        for operation in operations:
            try:
                self._carry_out(operation, shown)
            except (SinkUnavailable, TargetRefused) as error:
                self._take_back(renamed, shown, error)
                raise
            if isinstance(operation, Rename):
                renamed.append(operation)
        return self._ledger.put(entries, seen, absent, _begun_anew(entries, seen))

    exchanges_at_once = False
    leaves_aside = (TargetRefused, SinkUnavailable)
    """A function may raise for ever what another sink raises while it is away."""

    def _take_back(
        self, renamed: Sequence[Rename], shown: dict[TargetName, Shows], error: Exception
    ) -> None:
        """A later call raised: the names are as the ledger has them. Raises TargetRefused where one
        can't be given back."""
        for one in reversed(renamed):
            here = self._ledger.look(one.old)
            about = replace(self._about(one.old, here, shown), target=one.new)
            try:
                self._process.call(Carry(about, "rename", one.old))
            except (SinkUnavailable, TargetRefused) as again:
                raise TargetRefused(
                    f"{error}; and {one.new}, which was {one.old}, could not be given its name "
                    f"back: {again}: do it by hand, for binlogd goes on with {one.old}"
                ) from error

    def freed(self, target: TargetName) -> str | None:
        """See ``TableStore.freed``."""
        return self._ledger.freed(target)

    def is_empty(self, seen: Row) -> bool:
        """Nobody knows."""
        return False

    def may_hold_null(self, seen: Row, column: str) -> bool:
        """Nobody knows."""
        return True

    def close(self) -> None:
        """End the process, release the ledger."""
        self._process.close()
        self._ledger.close()

    def _carry_out(self, operation: Operation, shown: dict[TargetName, Shows]) -> None:
        match operation:
            case WriteRows(seen, batch):
                self._apply(seen, batch, shown[seen.target].marks)
            case Remake(target, emptied=True):
                here = self._ledger.look(target)
                self._process.call(Carry(self._about(target, here, shown), "truncate"))
            case Rename(old, new):
                here = self._ledger.look(old)
                self._process.call(Carry(self._about(old, here, shown), "rename", new))
            case Drop(target):
                here = self._ledger.look(target)
                self._process.call(Carry(self._about(target, here, shown), "drop"))
            case TakeAbove():
                raise TargetRefused(
                    "a changelog of a handler can't be reset: what it did can't be taken back"
                )

    def _apply(self, seen: Row, batch: StagedBatch, marks: Marks) -> None:
        assert batch.path is not None
        about = CallContext(
            batch.target,
            seen.table.keys,
            batch.mode.value,
            {str(lane): (span.after, span.through) for lane, span in batch.lanes.items()},
            marks.text(),
            self._version(batch.target, marks),
            left_out(self, seen, batch),
        )
        self._keep_rejected(batch.target, self._process.call(Apply(about, batch.path)))

    def _about(
        self, target: TargetName, here: Row | Absent, shown: dict[TargetName, Shows] | None = None
    ) -> CallContext:
        marks = shown[target].marks if shown and target in shown else here.marks
        made = None if isinstance(here, Absent) else here.table
        keys, mode = ((), "upsert") if made is None else (made.keys, made.mode.value)
        return CallContext(target, keys, mode, {}, marks.text(), self._version(target, marks))

    def _version(self, target: TargetName, marks: Marks) -> int:
        """The generation, and the sum of the marks, which only grow within one."""
        generation = self._ledger.generation(target)
        if generation >> GENERATION_BITS:
            raise TargetRefused(f"it was started again more than {counted(generation - 1, 'time')}")
        return (generation << OFFSET_BITS) + sum(at + 1 for at in marks.offsets.values())

    def _keep_rejected(self, target: TargetName, done: CallDone) -> None:
        """Durable before the marks move."""
        if not done.rejected:
            return
        path = self._folder / "rejected.jsonl"
        if path.exists() and path.stat().st_size >= MOST_REJECTED_BYTES:
            # They are nowhere else: none is dropped for a new one.
            raise SinkUnavailable(
                f"{target}: {path} has {MOST_REJECTED_BYTES >> 20} MiB of rejected rows: look at"
                " them, then move it away or remove it, and writing continues"
            )
        try:
            with open(path, "a", encoding="utf-8", opener=private_opener) as file:
                for row, reason in done.rejected:
                    line = {"target": str(target), "reason": reason, "row": json.loads(row)}
                    file.write(json_text(line) + "\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise SinkUnavailable(f"{target}: {path}: {error}") from error
        rows, (_, first) = len(done.rejected), done.rejected[0]
        log.warning(
            "rows_rejected", target=str(target), rows=rows, first=printable(first), file=str(path)
        )


def _begun_anew(entries: Sequence[Entry], seen: Sequence[Row]) -> list[TargetName]:
    """The targets of which a mark goes back, or that another table takes: what comes next is older
    by its offsets, and is to win."""
    before = {row.target: row.marks for row in seen}
    anew = [entry.target for entry in entries if isinstance(entry, Forgets)]
    for entry in entries:
        if isinstance(entry, Shows):
            old = before.get(entry.target, Marks()).offsets
            lower = any(entry.marks.of(lane) < at for lane, at in old.items())
            if lower or (entry.made is None and entry.target in before):
                anew.append(entry.target)
    return anew


def _parsed(text: str) -> Marks:
    try:
        return Marks.parse(text)
    except (ValueError, TypeError, AttributeError) as error:
        raise TargetRefused(
            f"done_through gave {text!r}, which is no context.marks ({error})"
        ) from error
