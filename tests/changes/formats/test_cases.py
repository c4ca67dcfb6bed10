"""Every case of every format, read in all ways: alone, amid others, by people, from a letter."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from actors.contract.messages import DeadLetter
from changes.formats.as_target import AsTarget
from changes.formats.engine.format import RowChange, Statement
from changes.model.model import BadMessage, BadRecord, Ddl, Head, Kind, Mode, TargetName
from changes.model.records import Values
from changes.routes.routing import Route, Router
from daemon.operations.replay.conflicts import read_now
from daemon.state.dead_letters.files import FileLetters, read_files
from sources.base.letter import LetterMaker
from sources.base.port import LogRecord
from tests.changes.formats.cases import NOT_SAID, Case, FormatCases, Row, Value, seen
from tests.changes.formats.own_records import TABLES, known
from tests.changes.formats.samples import single
from tests.daemon.state.dead_letters.letters import S0, Log

BESIDE = 3
"""Good messages before a case and behind it."""
MANY = 40
"""Times that a message of rows is repeated, so that most are read as a block."""


def every(*, refused: bool | None = None) -> list[Any]:
    return [
        pytest.param(of, case, id=f"{of.format}: {case.says}")
        for of in TABLES
        for case in of.cases
        if refused in (None, case.refusal is not None)
    ]


def given(values: Sequence[Value]) -> Sequence[bytes]:
    """Several in one piece of memory, as the daemon gives them."""
    several = len(values) > 1 and None not in values
    return Values.of(values) if several else values  # type: ignore[arg-type, return-value]


def decoded(of: FormatCases, case: Case, *calls: Sequence[Value]) -> Iterator[list[Row]]:
    """The rows of each call of one new decoder."""
    decoder, at = of.decoder(case), 0
    for values in calls:
        offsets = range(at, at + len(values))
        changes = decoder.decode(7, offsets, given(values))
        if changes is not None and changes.mode is Mode.APPEND:
            places = [row["_offset"] for row in changes.table.to_pylist()]
            assert places == sorted(places)
            assert set(places) <= set(offsets)
        rows = seen(changes)
        if changes is not None:
            assert (changes.mode is Mode.APPEND) == (case.changelog is not None)
            assert changes.count == len(changes_of(rows))
        yield rows
        at = offsets.stop


@pytest.mark.parametrize(("of", "case"), every())
def test_alone(of: FormatCases, case: Case) -> None:
    """What the case says: its table, then its rows in one call as in one call for each message."""
    format_, values = of.made(case), case.values
    if case.unreadable is not None:
        with pytest.raises(BadMessage) as unreadable:
            looked_at(of, case)
        assert case.unreadable in str(unreadable.value)
        return
    heads = [format_.peek(value) for value in values]
    if case.nothing:
        assert {head.kind for head in heads} == {Kind.NOTHING}
    elif case.statements is not None:
        assert {head.kind for head in heads} == {Kind.DDL}
        assert looked_at(of, case) == tuple(case.statements)
    else:
        assert {(head.kind, str(head.table)) for head in heads} == {
            (Kind.ROWS, case.table or of.table)
        }
        if case.columns is not None:
            assert columns_of(of, case) == list(case.columns.items())
        if case.unfit is None:
            expected = list(case.rows if case.changelog is None else case.changelog)
            assert list(decoded(of, case, values)) == [expected]
            singly = decoded(of, case, *([value] for value in values))
            rows = [row for rows in singly for row in rows]
            assert len(rows) == len(expected)
            assert rows == [early(said, row) for said, row in zip(expected, rows, strict=True)]
        else:
            assert refused(of, case, values).index == len(values) - 1


def columns_of(of: FormatCases, case: Case) -> list[tuple[str, pa.DataType]]:
    """The columns of the table that the case's messages make."""
    decoder = of.decoder(case)
    decoder.decode(7, range(len(case.values)), case.values)  # type: ignore[arg-type]
    assert decoder.schema is not None
    return [(column.name, column.type) for column in decoder.schema.columns]


def looked_at(of: FormatCases, case: Case) -> tuple[Ddl, ...]:
    """The statements of the last message; raises BadMessage."""
    format_, value = of.made(case), case.values[-1]
    return format_.ddl(value) if format_.peek(value).kind is Kind.DDL and value else ()


def refused(of: FormatCases, case: Case, values: Sequence[Value]) -> BadRecord:
    """What is refused for the case's reason; the decoder is as it was before."""
    decoder = of.decoder(case)
    with pytest.raises(BadRecord) as error:
        decoder.decode(7, range(len(values)), given(values))
    place = error.value.index
    assert case.unfit is not None
    assert case.unfit in error.value.reason
    assert "\n" not in error.value.reason
    assert decoder.schema is None
    if place:
        before = decoder.decode(7, range(place), values[:place])  # type: ignore[arg-type]
        fresh = of.decoder(case).decode(7, range(place), values[:place])  # type: ignore[arg-type]
        assert before is not None
        assert fresh is not None
        assert before.table.equals(fresh.table)
    return error.value


@pytest.mark.parametrize(("of", "case"), every())
def test_amid_others(of: FormatCases, case: Case) -> None:
    """Good messages before and behind it change nothing, nor does a block of its like."""
    good, values = [case.good or of.good] * BESIDE, case.values
    if case.unfit is not None:
        for before in (good, good * MANY):
            place = len(before) + len(values) - 1
            assert refused(of, case, [*before, *values, *good]).index == place
        return
    format_ = of.made(case)
    heads = format_.heads([*good, *values, *good])
    if case.unreadable is not None:
        assert [next(heads).kind for _ in good] == [Kind.ROWS] * BESIDE
        assert head_or_reason(lambda: next(heads)) == head_or_reason(
            lambda: format_.peek(values[0])
        )
        return
    alone = [format_.peek(value) for value in values]
    assert list(heads)[BESIDE:-BESIDE] == alone
    if case.rows is None and case.changelog is None:
        return
    expected = list(case.rows if case.changelog is None else case.changelog)
    (rows,) = decoded(of, case, [*good, *values, *good])
    ours = rows[BESIDE : len(rows) - BESIDE]
    assert len(ours) == len(expected)
    assert [alike(row, said) for row, said in zip(ours, expected, strict=True)] == expected
    if len(values) == 1:
        assert list(decoded(of, case, values * MANY)) == [expected * MANY]


def head_or_reason(ask: Callable[[], Head]) -> Head | str:
    """The head of a message, or why it has none."""
    try:
        return ask()
    except BadMessage as bad:
        return str(bad)


def early(said: Row, row: Row) -> Row:
    """What is said of a row, without the nulls of columns that come later."""
    op, values, *was = said
    return (op, {n: v for n, v in values.items() if n in row[1] or v is not None}, *was)


def alike(row: Row, said: Row) -> Row:
    """The row without the columns that only its neighbours have: in it they are null."""
    op, values, *was = row
    return (op, {n: v for n, v in values.items() if n in said[1] or v is not None}, *was)


@pytest.mark.parametrize(("of", "case"), every())
def test_people_see_the_same(of: FormatCases, case: Case) -> None:
    """``explain`` of a message alone says what its target gets, or why it gets nothing."""
    format_, values = of.made(case), case.values
    if case.refusal is not None:
        told = told_of(of, case)
        assert told is None or "\n" not in told
        if case.by_itself:
            assert told is not None
            assert case.refusal in told
            assert case.unfit is None or told == refused(of, case, values).reason
        return
    changes = [format_.explain(value) for value in values]
    if case.keys is None and case.mode is Mode.UPSERT:
        shown = AsTarget(format_)
        assert [shown.explain(value) for value in values] == changes
    if case.nothing:
        assert not any(changes)
    elif case.statements is not None:
        (found,) = changes
        shown = [(each.table, each.sql) for each in found if isinstance(each, Statement)]
        assert len(shown) == len(found) > 0
        assert not case.statements or shown == [(ddl.table, ddl.sql) for ddl in case.statements]
    else:
        singly = decoded(of, case, *([value] for value in values))
        for rows, told_changes in zip(singly, changes, strict=True):
            agree(rows, told_changes)
    if case.at_ms is not NOT_SAID:
        assert [change.ts_ms for change in changes[-1]] == [case.at_ms]
    if case.before is not NOT_SAID:
        assert [change.before for change in changes[-1]] == [case.before]  # type: ignore[union-attr]


def told_of(of: FormatCases, case: Case) -> str | None:
    """What people are told is wrong with the last message, None where it is shown as a good one."""
    shown = AsTarget(of.made(case))
    for value in case.values[:-1]:
        with contextlib.suppress(BadMessage):
            shown.explain(value)
    try:
        changes = shown.explain(case.values[-1])
    except BadMessage as bad:
        return str(bad)
    misfits = [f"{c.table}: {c.misfit}" for c in changes if isinstance(c, RowChange) and c.misfit]
    return misfits[0] if misfits else None


def changes_of(rows: Sequence[Row]) -> list[Row]:
    """One row for each change: of a row that moved, the second."""
    ends = {place for place, row in enumerate(rows[1:]) if len(row) > 2}
    return [row for place, row in enumerate(rows) if place not in ends]


def agree(rows: Sequence[Row], changes: Sequence[Any]) -> None:
    """A target's rows of a message are those that people see."""
    rows = changes_of(rows)
    assert len(rows) == len(changes)
    for (op, values, *was), change in zip(rows, changes, strict=True):
        assert isinstance(change, RowChange)
        assert change.misfit is None
        assert op == change.op or (op, change.op) == ("U", "I")
        assert change.before is None or change.op != "I"
        assert (change.after is None) == (change.op == "D")
        assert all(is_same(value, values[name]) for name, value in change.key.items())
        shown = {**change.key, **(change.before or {}), **(change.after or {})}
        for image, kept in ((shown, values), *((change.before or {}, key) for key in was)):
            for name, value in kept.items():
                assert is_same(image.get(name), value), name


def is_same(shown: object, kept: object) -> bool:
    """Whether a value that people see is the target's: one may keep the text of a number."""
    if shown == kept:
        return True
    if isinstance(shown, bool):
        return kept == str(shown).lower()
    if isinstance(shown, str) != isinstance(kept, str):
        return Decimal(str(shown)) == Decimal(str(kept))
    return single(shown) == kept  # by the digits of a 32-bit number


@pytest.mark.parametrize(("of", "case"), every(refused=True))
def test_a_letter_of_it_is_read_again(of: FormatCases, case: Case, tmp_path: Path) -> None:
    """A dead letter has the record's bytes, and a replay refuses it for the same reason."""
    format_, value = of.made(case), case.values[-1]
    key, raw, headers = of.record(value)
    record = LogRecord(5, key, raw, tuple(headers), 1700)
    target = None if case.unfit is None else TargetName("lake", "a", "b")
    letters = FileLetters(tmp_path, "p", LetterMaker("p", format_, Log(record)))
    letters.keep(DeadLetter(S0, 1, 5, value, case.refusal or "", target))
    (letter,) = read_files(tmp_path, "p", [])
    assert letter.record == record
    assert (letter.reason == "unreadable") == (case.unfit is None)
    message = letter.message(format_, whole=True)
    assert message == value
    route = Route(("*.*",), (), "lake.{database}.{table}", case.mode, case.keys, case.types)
    candidate = read_now(format_, Router([route]), S0, letter.record, message)
    if case.by_itself or case.keys or case.mode is Mode.APPEND:
        (problem,) = candidate.problems
        assert case.refusal is not None
        assert case.refusal in problem
    else:
        assert not candidate.problems


@pytest.mark.parametrize("of", TABLES, ids=lambda of: of.format)
def test_the_fuzz_damages_them(of: FormatCases) -> None:
    """What a case shows is the beginning of many that are damaged, and no two are called alike."""
    corpus = known(of.format)
    assert all(record in corpus for record in of.records())
    assert len({case.says for case in of.cases}) == len(of.cases)
