"""A step of statements that each commit by themselves: recorded first, and repeated to its end.

MySQL commits before and after each statement about a table. So the ledger first tells, in the row
of each target that takes part, what is going to be done and what the ledger says afterwards. Each
statement leaves a stamp in its table's comment, in the same ALTER TABLE, which shows after a crash
how far it came: the next look at one of the targets does the rest. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from changes.model.model import TargetName
from offsets.fence import Marks
from sparkwriter.kit.marks_table.table_description import (
    Drop,
    Entry,
    Forgets,
    Frees,
    Made,
    Make,
    Operation,
    Remake,
    Rename,
    Shows,
    TakeOver,
)
from sparkwriter.sql.base.session import target_name
from sparkwriter.sql.base.tables import DbTable, check_new
from sparkwriter.sql.mysql.words import MySqlDialect

Describe = Callable[[TargetName], DbTable | None]
Stamp = Callable[[TargetName], str | None]
"""The stamp that a table has, empty without one; None: there is no such table."""


@dataclass(frozen=True, slots=True)
class Stamped:
    """A statement about ``table``: done where that has the stamp ``needs`` (empty: where it is
    there, None: where it is not). Afterwards the table ``then`` has the stamp ``leaves``."""

    sql: str
    table: TargetName
    needs: str | None
    then: TargetName | None = None
    leaves: str = ""
    only_stamps: bool = False
    """Nothing but the comment is changed."""


@dataclass(frozen=True, slots=True)
class RedoStep:
    """Statements in order, and what the ledger says once they are done."""

    token: str
    statements: tuple[Stamped, ...]
    entries: tuple[Entry, ...]
    others: tuple[TargetName, ...] = ()
    """Targets that take part, and of which there is no entry."""
    emptied: tuple[TargetName, ...] = ()
    """Tables that lose their rows, when the entries are made."""

    @property
    def targets(self) -> list[TargetName]:
        """All that take part, in the order in which they are locked."""
        return sorted({*(entry.target for entry in self.entries), *self.others})

    def begin_at(self, stamp_of: Stamp) -> int:
        """The first statement that is not known to be done, by the stamps there are."""
        for at in range(len(self.statements) - 1, -1, -1):
            one = self.statements[at]
            if one.then is not None and stamp_of(one.then) == one.leaves:
                return at + 1
        return 0

    def text(self) -> str:
        """As the ledger keeps it."""
        return json.dumps(
            {
                "token": self.token,
                "statements": [asdict(one) for one in self.statements],
                "entries": [_said(entry) for entry in self.entries],
                "others": self.others,
                "emptied": self.emptied,
            },
            ensure_ascii=False,
        )

    @classmethod
    def parse(cls, text: str) -> RedoStep:
        """Read back what ``text`` wrote."""
        read: dict[str, Any] = json.loads(text)
        return cls(
            read["token"],
            tuple(
                Stamped(
                    one["sql"],
                    TargetName(*one["table"]),
                    one["needs"],
                    None if one["then"] is None else TargetName(*one["then"]),
                    one["leaves"],
                    one.get("only_stamps", False),
                )
                for one in read["statements"]
            ),
            tuple(_entry(*entry) for entry in read["entries"]),
            tuple(TargetName(*other) for other in read["others"]),
            tuple(TargetName(*name) for name in read["emptied"]),
        )


def may_run(needs: str | None, stamp: str | None) -> bool:
    """Whether a statement finds its table as it needs it."""
    return stamp is None if needs is None else (stamp is not None if not needs else stamp == needs)


def plan_step(
    words: MySqlDialect,
    operations: Sequence[Operation],
    entries: Sequence[Entry],
    seen: Sequence[TargetName],
    describe: Describe,
    token: str,
) -> RedoStep:
    """The step of these operations and entries."""
    emptied = [one.target for one in operations if isinstance(one, Remake) and one.emptied]
    for one in operations:
        if isinstance(one, Rename):
            emptied = [one.new if name == one.old else name for name in emptied]
    others = set(seen) - {entry.target for entry in entries}
    return RedoStep(
        token,
        tuple(_statements(words, operations, describe, token)),
        tuple(entries),
        tuple(sorted(others)),
        tuple(emptied),
    )


def _statements(
    words: MySqlDialect, operations: Sequence[Operation], describe: Describe, token: str
) -> Iterator[Stamped]:
    """What the operations come to. Renames that follow one another are one statement."""
    stamps: dict[TargetName, str] = {}
    comments: dict[TargetName, str] = {}
    pairs: list[tuple[TargetName, TargetName]] = []
    for at, operation in enumerate(operations):
        stamp = f"{token}.{at}"
        if pairs and not isinstance(operation, Rename):
            yield _renamed(words, pairs, stamps)
        match operation:
            case Make(target, made):
                yield Stamped(words.make(target, made, stamp), target, None, target, stamp)
            case Remake(target):
                table = describe(target)
                if table is not None and not operation.is_same:
                    check_new(table, operation.before, operation.after)
                    first, *rest = words.remake(operation, table, stamp)
                    yield Stamped(first, target, "", target, stamp)
                    yield from (Stamped(one, target, stamp) for one in rest)
            case TakeOver(new, old):
                # Rights are the name's, and stay with it.
                comments[new] = "" if (table := describe(old)) is None else table.comment
            case Rename(old, new):
                yield from _stamp(words, old, describe(old), stamp, comments.get(old))
                stamps[old] = stamp
                pairs.append((old, new))
            case Drop(target):
                if target not in stamps:
                    yield from _stamp(words, target, describe(target), stamp)
                    stamps[target] = stamp
                gone = f"DROP TABLE {target_name(words, target)}"
                yield Stamped(gone, target, stamps[target])
    if pairs:
        yield _renamed(words, pairs, stamps)


def _stamp(
    words: MySqlDialect,
    target: TargetName,
    table: DbTable | None,
    stamp: str,
    comment: str | None = None,
) -> Iterator[Stamped]:
    """``comment``: instead of its own."""
    if table is not None:
        table = table if comment is None else replace(table, comment=comment)
        yield Stamped(words.stamp(target, table, stamp), target, "", target, stamp, True)


def _renamed(
    words: MySqlDialect,
    pairs: list[tuple[TargetName, TargetName]],
    stamps: dict[TargetName, str],
) -> Stamped:
    """The stamps go with the tables."""
    (first, _), (last, to) = pairs[0], pairs[-1]
    made = Stamped(words.rename_all(pairs), first, stamps[first], to, stamps[last])
    moved = {new: stamps.pop(old) for old, new in pairs}
    stamps.update(moved)
    pairs.clear()
    return made


def _said(entry: Entry) -> list[object]:
    match entry:
        case Shows(target, marks, made):
            return ["shows", target, marks.text(), None if made is None else made.text()]
        case Forgets(target):
            return ["forgets", target]
        case Frees(target, renaming):
            return ["frees", target, renaming]


def _entry(kind: str, target: list[str], *said: Any) -> Entry:
    name = TargetName(*target)
    if kind == "forgets":
        return Forgets(name)
    if kind == "frees":
        return Frees(name, said[0])
    marks, made = said
    return Shows(name, Marks.parse(marks), None if made is None else Made.parse(made))
