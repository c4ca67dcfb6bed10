"""Canonical texts read into Arrow, and values printed: what fits no type is refused by name."""

from __future__ import annotations

import pyarrow as pa
import pytest

from changes.sql.forms import Form
from changes.sql.spark.arrow_texts import TextUnreadable, natural, printed, read, row_text
from changes.sql.spark.schema import arrow_type


@pytest.mark.parametrize(
    ("form", "type_", "text", "again"),
    [
        (Form.WHOLE, "int", "-7", "-7"),
        (Form.WHOLE, "decimal(20, 0)", "18446744073709551615", "18446744073709551615"),
        (Form.BOOLEAN, "boolean", "1", "1"),
        (Form.DECIMAL, "decimal(10, 2)", "1.5", "1.50"),
        (Form.DECIMAL, "decimal(10, 7)", "0.0000001", "0.0000001"),
        (Form.DECIMAL, "decimal(10, 2)", "NaN", None),
        (Form.SINGLE, "float", "0.10000000149011612", str(0x3FB99999A0000000)),
        (Form.DOUBLE, "double", "-0", str(-(1 << 63))),
        (Form.DOUBLE, "double", "NaN", str(0x7FF8 << 48)),
        (Form.TEXT, "string", "a b ", "a b "),
        (Form.STRIPPED, "binary", "00ff", "00ff"),
        (Form.DATE, "date", "0001-01-01", "0001-01-01"),
        (Form.DATE, "date", "2024-00-01", None),
        (Form.DATE, "date", "infinity", None),
        (Form.LOCAL, "timestamp", "9999-12-31 23:59:59.999999", "9999-12-31 23:59:59.999999"),
        (Form.LOCAL, "string", "2024-01-02 03:04:05.000000", "2024-01-02 03:04:05"),
        (Form.INSTANT, "timestamptz", "2024-01-02 03:04:05.000001", "2024-01-02 03:04:05.000001"),
        (Form.COMPACT, "string", '{"a, b": "c: \\" d", "e": [1, 2]}',
         '{"a, b":"c: \\" d","e":[1,2]}'),
    ],
)  # fmt: skip
def test_a_text_is_read_and_its_value_has_one_text(
    form: Form, type_: str, text: str, again: str | None
) -> None:
    """A null stays null, on either way."""
    value = read(form, type_, pa.array([text, None], pa.string()))
    assert value.type == arrow_type(type_)
    assert printed(value).to_pylist() == [again, None]


@pytest.mark.parametrize(
    ("form", "type_", "text"),
    [
        (Form.WHOLE, "int", "2147483648"),
        (Form.BOOLEAN, "boolean", "2"),
        (Form.DECIMAL, "decimal(4, 2)", "1.234"),
        (Form.DECIMAL, "decimal(4, 2)", "123.45"),
        (Form.DATE, "date", "2023-02-30"),
        (Form.DATE, "date", "10000-01-01"),
        (Form.LOCAL, "timestamp", "0000-01-01 00:00:00.000000"),
        (Form.ARRAY, "string", "an array of several dimensions"),
    ],
)
def test_what_does_not_fit_is_refused_by_its_value(form: Form, type_: str, text: str) -> None:
    """Nothing is rounded, and nothing becomes null."""
    with pytest.raises(TextUnreadable, match=f"value {text}"):
        read(form, type_, pa.array([None, text], pa.string()))


def test_a_zero_date_is_refused_where_it_is_asked() -> None:
    """As ``zero_dates`` says."""
    with pytest.raises(TextUnreadable, match="no date of a calendar"):
        read(Form.DATE, "date", pa.array(["2024-01-00"]), "error")


def test_a_type_of_another_form_is_no_reading() -> None:
    """The caller looks first."""
    with pytest.raises(ValueError, match="not read"):
        read(Form.TEXT, "int", pa.array(["1"]))


def test_a_value_s_text_does_not_depend_on_its_width() -> None:
    """So a column that was widened is compared."""
    assert natural("int") is natural("long") is Form.WHOLE
    assert natural("float") is natural("double")
    assert printed(pa.array([0.5], pa.float32())) == printed(pa.array([0.5], pa.float64()))


def test_rows_that_differ_have_different_texts() -> None:
    """Nulls, empty texts, blanks at the end, swapped columns."""
    rows = [("", "a"), (None, "a"), ("a", ""), ("a", None), ("a ", ""), ("n", ""), ("1:a", "")]
    texts = {row_text(row, (True, True)) for row in rows}
    assert len(texts) == len(rows)
    assert row_text(("1", None), (False, False)) == "1,n,"
