"""Canal's values over several rows: which of several misfits counts, types that change."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from changes.formats.canal.json import CanalJson
from changes.model.model import BadRecord, FormatOptions, Mode
from changes.model.records import Values
from tests.changes.formats.canal.messages import column, decode, message
from tests.changes.formats.canal.values import ZERO_DATES


@pytest.mark.parametrize(("kind", "text"), ZERO_DATES)
def test_zero_dates_are_null_and_counted(kind: str, text: str) -> None:
    """A day that no lake has is null unless configured otherwise, and it is told how many."""
    rows = [{"id": str(place), "v": v} for place, v in enumerate((text, "2024-01-02", None, text))]
    changes = decode(message(data=rows, types={"id": "int", "v": kind}))
    assert [value is None for value in changes.table["v"].to_pylist()] == [True, False, True, True]
    assert changes.nulled == 2


def test_misfit_after_a_new_definition() -> None:
    """The record named is right where the rows are read in several ways."""
    values = [
        message(data=[{"id": "1", "v": "1"}], types={"id": "int", "v": "enum('a')"}),
        message(data=[{"id": "2", "v": "1"}], types={"id": "int", "v": "enum('b','a')"}),
        message(data=[{"id": "3", "v": "3"}], types={"id": "int", "v": "enum('b','a')"}),
    ]
    with pytest.raises(BadRecord, match=r"v: '3' is not an enum\('b','a'\)") as refused:
        decode(*values)
    assert refused.value.index == 2


def test_first_misfit_of_all_columns_counts() -> None:
    """The record named is the first bad one, whichever of its columns was converted first."""
    types = {"id": "int", "a": "int", "b": "int"}
    rows = [{"id": str(n), "a": str(n), "b": str(n)} for n in range(50)]
    rows[40]["a"] = "late"
    rows[20]["b"] = "early"
    values = [message(data=[row], types=types) for row in rows]
    with pytest.raises(BadRecord, match="b: 'early' is not an int") as refused:
        decode(*values)
    assert refused.value.index == 20


def test_misfit_before_a_broken_message_counts() -> None:
    """A value that does not fit is told before a later message that can't be read at all."""
    bad_value = message(data=[{"id": "x", "name": "a", "price": "1"}])
    with pytest.raises(BadRecord, match="'x' is not an int") as refused:
        decode(message(), bad_value, message(data=[None]))
    assert refused.value.index == 1


def test_long_values_are_cut_in_errors() -> None:
    """An error stays one readable line."""
    with pytest.raises(BadRecord) as refused:
        column("int", "x" * 100_000)
    assert len(refused.value.reason) < 200


def test_timestamps_are_read_in_the_zone() -> None:
    """TIMESTAMP text is a reading of the configured zone's clocks."""
    values = column("timestamp(3)", "2024-01-01 08:00:00.5", time_zone="Asia/Shanghai")
    assert values.to_pylist() == [datetime(2024, 1, 1, microsecond=500_000, tzinfo=UTC)]
    assert values.type.tz == "UTC"


@pytest.mark.parametrize("word", ["decimal", "DECIMAL unsigned", "numeric"])
def test_a_decimal_without_digits_has_those_that_are_declared(word: str) -> None:
    """Flink's and other writers leave the digits out."""
    good, bad = (
        message(data=[{"id": "1", "p": text}], types={"id": "int", "p": word})
        for text in ("1.5", "1.567")
    )
    declared = (("p", "decimal(10,2)"),)
    decoder = CanalJson(FormatOptions()).table_decoder(Mode.UPSERT, None, declared)
    changes = decoder.decode(7, range(1), Values.of([good]))
    assert changes is not None
    assert changes.table["p"].to_pylist() == [Decimal("1.50")]
    with pytest.raises(BadRecord, match=r"p: '1\.567' is not a decimal\(10,2\)$"):
        decoder.decode(7, range(1), Values.of([bad]))
