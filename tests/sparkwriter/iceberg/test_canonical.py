"""Canonical texts in Spark: read into each type, printed again; what does not fit is an error."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

import pytest
from pyspark.sql import SparkSession

from changes.model.model import ZeroDates
from changes.sql.forms import Form
from changes.sql.spark.canonical import compared, is_readable, printed, read
from changes.sql.spark.words import string_literal

pytestmark = pytest.mark.integration

READ: list[tuple[Form, str, str, object]] = [
    (Form.WHOLE, "int", "-2147483648", -(2**31)),
    (Form.WHOLE, "long", "9223372036854775807", 2**63 - 1),
    (Form.WHOLE, "decimal(20, 0)", "18446744073709551615", Decimal(2**64 - 1)),
    (Form.WHOLE, "string", "007", "007"),
    (Form.WHOLE, "boolean", "1", True),
    (Form.BOOLEAN, "boolean", "0", False),
    (Form.BOOLEAN, "int", "1", 1),
    (
        Form.DECIMAL,
        "decimal(38, 10)",
        f"-{'9' * 28}.{'9' * 10}",
        Decimal(f"-{'9' * 28}.{'9' * 10}"),
    ),
    (Form.DECIMAL, "decimal(10, 1)", "1.50", Decimal("1.5")),
    (Form.DECIMAL, "decimal(10, 2)", "NaN", None),
    (Form.DECIMAL, "string", f"{'9' * 40}.0", f"{'9' * 40}.0"),
    (Form.VARIABLE, "string", "1E+20", "1E+20"),
    (Form.VARIABLE, "string", "Infinity", None),
    (Form.SINGLE, "float", "0.10000000149011612", 0.10000000149011612),
    (Form.SINGLE, "double", "0.10000000149011612", 0.10000000149011612),
    (Form.DOUBLE, "double", "5e-324", 5e-324),
    (Form.DOUBLE, "double", "-Infinity", -math.inf),
    (Form.TEXT, "string", "NULL", "NULL"),
    (Form.TEXT, "string", "", ""),
    (Form.HEX, "binary", "00ff00", b"\x00\xff\x00"),
    (Form.HEX, "binary", "", b""),
    (Form.DATE, "date", "0001-01-01", dt.date(1, 1, 1)),
    (Form.DATE, "date", "0000-00-00", None),
    (Form.DATE, "date", "2024-00-10", None),
    (Form.DATE, "date", "infinity", None),
    (Form.LOCAL, "timestamp", "1582-10-10 00:00:00.000001", dt.datetime(1582, 10, 10, 0, 0, 0, 1)),
    (Form.LOCAL, "string", "2024-01-02 03:04:05.000000", "2024-01-02 03:04:05"),
    (Form.LOCAL, "string", "2024-01-02 03:04:05.120000", "2024-01-02 03:04:05.120000"),
    (Form.TIME, "string", "-838:59:59", "-838:59:59"),
    (Form.ARRAY, "string", "[1,null]", "[1,null]"),
    (
        Form.COMPACT,
        "string",
        '{"a": [1, null], "b, c": "d: \\"e\\\\", "\\\\": "f, g"}',
        '{"a":[1,null],"b, c":"d: \\"e\\\\","\\\\":"f, g"}',
    ),
]
REFUSED: list[tuple[Form, str, str, ZeroDates]] = [
    (Form.WHOLE, "int", "2147483648", "null"), (Form.WHOLE, "boolean", "2", "null"),
    (Form.WHOLE, "long", "18446744073709551615", "null"),
    (Form.DECIMAL, "decimal(10, 1)", "1.55", "null"),
    (Form.DECIMAL, "decimal(4, 1)", "12345.0", "null"), (Form.SINGLE, "float", "abc", "null"),
    (Form.DATE, "date", "0000-00-00", "error"), (Form.DATE, "date", "infinity", "error"),
    (Form.DATE, "date", "12024-01-01", "null"), (Form.DATE, "date", "0044-03-15 BC", "null"),
    (Form.DATE, "date", "2023-02-30", "null"), (Form.DATE, "date", "0000-01-01", "null"),
    (Form.LOCAL, "timestamp", "2023-02-30 00:00:00.000000", "null"),
    (Form.INSTANT, "timestamptz", "2023-01-01 25:00:00.000000", "null"),
    (Form.HEX, "binary", "zz", "null"),
    (Form.ARRAY, "string", "an array of several dimensions", "null"),
]  # fmt: skip


def value_of(spark: SparkSession, expression: str, text: str) -> object:
    frame = spark.range(1).selectExpr(f"{string_literal(text)} AS t", "id")
    # Not folded when it is planned: as in a job, each value is looked at.
    return frame.repartition(1).selectExpr(expression).first()[0]


@pytest.mark.parametrize(("form", "type_", "text", "value"), READ)
def test_a_text_is_read(
    spark: SparkSession, form: Form, type_: str, text: str, value: object
) -> None:
    """As the value that the stream's decoder gives, in the lake's type."""
    found = value_of(spark, read(form, type_, "t"), text)
    assert (bytes(found) if isinstance(found, bytearray) else found) == value
    assert value_of(spark, f"{read(form, type_, 'CAST(NULL AS STRING)')} AS v", text) is None


@pytest.mark.parametrize(("form", "type_", "text", "zero_dates"), REFUSED)
def test_what_does_not_fit_ends_the_query(
    spark: SparkSession, form: Form, type_: str, text: str, zero_dates: ZeroDates
) -> None:
    """With the value: nothing is rounded, wrapped or null that was something."""
    with pytest.raises(
        Exception, match=r"(?i)value|cast|overflow|represent|malformed|invalid"
    ) as told:
        value_of(spark, read(form, type_, "t", zero_dates), text)
    assert text[:20] in str(told.value)


def test_instants_are_in_utc(spark: SparkSession) -> None:
    """Whatever zone a session has."""
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "America/New_York")
    expression = read(Form.INSTANT, "timestamptz", "'2024-03-31 01:30:00.000001'")
    (micros,) = session.range(1).selectExpr(f"unix_micros({expression})").first()
    assert micros == 1711848600000001


@pytest.mark.parametrize(
    ("type_", "value", "text"),
    [
        ("decimal(38, 2)", "-12.34", "-12.34"), ("decimal(38, 2)", "-12.30", "-12.3"),
        ("decimal(38, 2)", "100", "100"), ("decimal(38, 10)", "0", "0"),
        ("decimal(38, 0)", "100", "100"), ("decimal(20, 9)", "0.000000100", "0.0000001"),
    ],
)  # fmt: skip
def test_a_decimal_is_printed_as_one_of_no_declared_scale(
    spark: SparkSession, type_: str, value: str, text: str
) -> None:
    """PostgreSQL's ``trim_scale``: money has the digits of the server's locale, numeric any."""
    stored = f"CAST('{value}' AS {type_.upper()})"
    assert value_of(spark, printed(Form.VARIABLE, type_, stored), "") == text


@pytest.mark.parametrize("number", [0.1, -0.0, 5e-324, 2.0**-44, 1.7976931348623157e308, math.inf])
def test_doubles_are_compared_by_their_bits(spark: SparkSession, number: float) -> None:
    """Java's digits are not always the shortest."""
    assert compared(Form.DOUBLE) is Form.BITS
    text = value_of(spark, printed(Form.BITS, "double", f"CAST('{number!r}' AS DOUBLE)"), "")
    assert value_of(spark, read(Form.BITS, "double", "t"), str(text)) == number
    with pytest.raises(ValueError, match="bits"):
        printed(Form.DOUBLE, "double", "v")


def test_json_is_compared_with_its_blanks(spark: SparkSession) -> None:
    """The lake's compact text becomes the database's again."""
    text = '{"a, b": [1, {"c": "\\\\\\" : ,"}], "d": {}}'
    stored = f"({read(Form.COMPACT, 'string', 't')})"
    assert value_of(spark, printed(Form.COMPACT, "string", stored), text) == text


def test_what_is_not_readable_is_no_sql() -> None:
    """A type that could hold another text than the canonical one."""
    assert not is_readable(Form.DOUBLE, "string")
    assert not is_readable(Form.INSTANT, "string")
    for form, type_ in ((Form.DOUBLE, "string"), (Form.TEXT, "int"), (Form.HEX, "string")):
        with pytest.raises(ValueError, match=form.value):
            read(form, type_, "t")
        with pytest.raises(ValueError, match=form.value):
            printed(form, type_, "v")
