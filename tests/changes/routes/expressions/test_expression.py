"""What an expression computes, which types go together, and what is an error of a row."""

from __future__ import annotations

import datetime
import time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from changes.routes.expressions.expression import BadValue, Expression
from changes.routes.expressions.syntax import ExpressionError
from changes.routes.expressions.types import NamedColumns

D = Decimal
TYPES: dict[str, pa.DataType] = {
    "i": pa.int32(),
    "n": pa.int64(),
    "p": pa.decimal128(10, 2),
    "wide": pa.decimal128(38, 10),
    "x": pa.float64(),
    "t": pa.string(),
    "b": pa.bool_(),
    "d": pa.date32(),
    "at": pa.timestamp("us"),
    "utc": pa.timestamp("us", "UTC"),
    "raw": pa.binary(),
}


def rows_of(**columns: list[Any]) -> NamedColumns:
    """Rows of some columns; each has as many."""
    arrays = {name: pa.array(values, TYPES[name]) for name, values in columns.items()}
    return NamedColumns(arrays, len(next(iter(arrays.values()))))


def values(text: str, **columns: list[Any]) -> list[Any]:
    """The expression's value of each row."""
    found: list[Any] = Expression(text).bind(TYPES).values(rows_of(**columns)).to_pylist()
    return found


def value(text: str, **columns: Any) -> Any:
    """The expression's value of one row."""
    (found,) = values(text, **{name: [each] for name, each in {"i": 0, **columns}.items()})
    return found


@pytest.mark.parametrize(
    ("text", "columns", "wanted"),
    [
        ("1 + 2 * 3", {}, 7),
        ("(1 + 2) * 3", {}, 9),
        ("2 - 1 - 1", {}, 0),
        ("-n", {"n": 5}, -5),
        ("- -5", {}, 5),
        ("7 DIV 2", {}, 3),
        ("-7 div 2", {}, -3),
        ("-7 % 2", {}, -1),
        ("n + i", {"n": 2**40, "i": 1}, 2**40 + 1),
        ("i * i", {"i": 2**30}, 2**60),
        ("p * 2", {"p": D("1.25")}, D("2.50")),
        ("p + 0.005", {"p": D("1.25")}, D("1.255")),
        ("p / 3", {"p": D("1.00")}, D("0.3333")),
        ("x / 2", {"x": 1.0}, 0.5),
        ("x > 10.1", {"x": 10.2}, True),
        ("n > 1.5", {"n": 2}, True),
        ("p = n", {"p": D("3.00"), "n": 3}, True),
        ("1 = 1 OR NULL", {}, True),
        ("1 = 2 AND NULL", {}, False),
        ("n = 1 AND NULL", {"n": 1}, None),
        ("NOT n = 1", {"n": 2}, True),
        ("n IS NULL", {"n": None}, True),
        ("n IS NOT NULL", {"n": None}, False),
        ("n = NULL", {"n": 1}, None),
        ("n IN (1, 2)", {"n": 2}, True),
        ("n IN (1, NULL)", {"n": 2}, None),
        ("n IN (1, NULL)", {"n": 1}, True),
        ("n NOT IN (1, 2)", {"n": 3}, True),
        ("n IN (1)", {"n": None}, None),
        ("n BETWEEN 1 AND 3 AND b", {"n": 2, "b": True}, True),
        ("n NOT BETWEEN 1 AND 3", {"n": 2}, False),
        ("t LIKE 'a_c%'", {"t": "abcd"}, True),
        ("t NOT LIKE '%x'", {"t": "abcd"}, True),
        ("t || '-' || t", {"t": "ä"}, "ä-ä"),
        ("t || NULL", {"t": "ä"}, None),
        ("'it''s'", {}, "it's"),
        ("lower(upper(t))", {"t": "Straße"}, "straße"),
        ("length(t)", {"t": "äöü"}, 3),
        ("substr(t, 2)", {"t": "äöü"}, "öü"),
        ("substr(t, 2, 1)", {"t": "äöü"}, "ö"),
        ("trim(t)", {"t": "  a "}, "a"),
        ("coalesce(t, 'none')", {"t": None}, "none"),
        ("nullif(n, 0)", {"n": 0}, None),
        ("nullif(n, 0)", {"n": None}, None),
        ("abs(i)", {"i": -(2**31)}, 2**31),
        ("round(p, 1)", {"p": D("1.25")}, D("1.30")),
        ("round(p)", {"p": D("-1.50")}, D("-2.00")),
        ("floor(x)", {"x": -1.5}, -2.0),
        ("CAST(t AS bigint)", {"t": " 12 "}, 12),
        ("CAST(t AS decimal(10, 2))", {"t": "1.25"}, D("1.25")),
        ("CAST(p AS string)", {"p": D("1.50")}, "1.5"),
        ("CAST(n AS string)", {"n": -5}, "-5"),
        ("CAST(n AS int)", {"n": 5}, 5),
        ("CAST(p AS bigint)", {"p": D("5.00")}, 5),
        ("CAST(n AS double)", {"n": 5}, 5.0),
        ("CAST(t AS date)", {"t": "2024-02-29"}, datetime.date(2024, 2, 29)),
        ("d >= '2024-01-01'", {"d": datetime.date(2024, 2, 29)}, True),
        ("at < TIMESTAMP '2024-01-01 00:00:00.5'", {"at": datetime.datetime(2024, 1, 1)}, True),
        ("date(at) = DATE '2024-01-01'", {"at": datetime.datetime(2024, 1, 1, 23)}, True),
        ("year(d) * 100 + month(d)", {"d": datetime.date(2024, 2, 29)}, 202402),
        ("hour(utc)", {"utc": datetime.datetime(2024, 1, 1, 23, tzinfo=datetime.UTC)}, 23),
        ("CASE WHEN n > 0 THEN 'p' WHEN n < 0 THEN 'm' ELSE '0' END", {"n": -1}, "m"),
        ("CASE n WHEN 1 THEN 'one' END", {"n": 2}, None),
        ("CASE WHEN n = 0 THEN 0 ELSE 10 DIV n END", {"n": 0}, 0),
        ("n <> 0 AND 10 DIV n > 1", {"n": 0}, False),
        ("n = 0 OR 10 DIV n > 1", {"n": 0}, True),
        ("coalesce(n, 1 DIV n)", {"n": 7}, 7),
        ('"T" || `t`', {"t": "x"}, "xx"),
        ("raw = raw", {"raw": b"\xff"}, True),
    ],
)  # fmt: skip
def test_an_expression_has_sqls_value(text: str, columns: dict[str, Any], wanted: Any) -> None:
    assert value(text, **columns) == wanted


@pytest.mark.parametrize(
    ("text", "columns", "reason"),
    [
        ("10 DIV n", {"n": 0}, "division by zero"),
        ("p / p", {"p": D("0.00")}, "division by zero"),
        ("x / 0", {"x": 1.0}, "division by zero"),
        ("10 % n", {"n": 0}, "division by zero"),
        ("n + 1", {"n": 2**63 - 1}, "overflow"),
        ("n * n", {"n": 2**40}, "overflow"),
        ("-n", {"n": -(2**63)}, "overflow"),
        ("CAST(t AS bigint)", {"t": "1x"}, "1x"),
        ("CAST(t AS date)", {"t": "2024-02-30"}, "2024-02-30"),
        ("CAST(n AS int)", {"n": 2**31}, "2147483648"),
        ("CAST(p AS bigint)", {"p": D("1.50")}, "data loss"),
        ("CAST(x AS int)", {"x": 1.5}, "1.5"),
    ],
)  # fmt: skip
def test_what_has_no_value_is_an_error_of_its_row(
    text: str, columns: dict[str, Any], reason: str
) -> None:
    """And of no other one, whatever stands around it."""
    with pytest.raises(BadValue) as bad:
        value(text, **columns)
    assert reason in bad.value.reason


def test_the_first_row_in_error_is_named() -> None:
    with pytest.raises(BadValue) as bad:
        values("1 DIV n", n=[1, 2, None, 3, 0, 4, 0])
    assert bad.value.row == 4


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("t > 5", "comparing with >: text with bigint"),
        ("n = '5'", "comparing with =: bigint with text"),
        ("x = n", "double with bigint"),
        ("x > p", "double with decimal(10, 2)"),
        ("d = at", "date with timestamp"),
        ("at = utc", "timestamp with timestamptz"),
        ("d > 'tomorrow'", "tomorrow"),
        ("n AND b", "AND wants conditions, not bigint"),
        ("t + 1", "+ wants numbers, not text"),
        ("n || t", "|| wants texts (CAST makes one), not bigint"),
        ("n / 2", "ambiguous"),
        ("p DIV 2", "DIV wants whole numbers"),
        ("wide * wide", "needs a CAST"),
        ("missing > 1", "there is no column missing"),
        ("NULL", "it is always NULL"),
        ("CASE WHEN n THEN 1 END", "WHEN wants a condition, not bigint"),
        ("CASE WHEN b THEN 1 ELSE 'x' END", "CASE: bigint with text"),
        ("coalesce(n, 'x')", "coalesce: bigint with text"),
        ("n IN (t)", "IN: bigint with text"),
        ("t IN (t)", "IN takes literals"),
        ("t LIKE t", "LIKE takes a pattern in quotes"),
        ("CAST(n AS date)", "CAST of bigint as date is not possible"),
        ("CAST(n AS time)", "a time of MySQL is text"),
        ("CAST(n AS number)", "CAST: unknown type 'number'"),
        ("substr(t, n)", "as literals"),
        ("read_csv('/etc/passwd')", "read_csv is no function; there are abs,"),
        ("length()", "length does not take 0 values"),
        ("(SELECT 1)", ") is expected, not '1'"),
        ("n = 1; DROP TABLE t", "';"),
        ("n >", "a value is expected, not 'the end'"),
        ("(n", ") is expected"),
        ("CASE END", "a value is expected"),
        ("n IS 1", "NULL is expected"),
        ("a b", "'b' is not expected there"),
        ("'open", "is not understood"),
        ("", "a value is expected"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named(text: str, said: str) -> None:
    """Before any row comes."""
    with pytest.raises(ExpressionError) as refused:
        Expression(text).bind(TYPES)
    assert said.lower() in str(refused.value).lower()


def test_the_columns_of_an_expression_are_known() -> None:
    text = 'CASE WHEN A > 1 THEN coalesce(b, "C d") ELSE CAST(e AS string) END || f'
    assert Expression(text).columns == {"a", "b", "c d", "e", "f"}


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("(" * 50 + "1" + ")" * 50, True),
        ("1" + "+1" * 101, True),
        ("n" * 5000, True),
        ("1" + "+1" * 100, False),
        ("(" * 39 + "1" + ")" * 39, False),
        ("NOT " * 1000 + "b", False),
        ("-" * 4000 + "1", False),
        (f"n IN ({', '.join(['1'] * 900)})", False),
    ],
    ids=["deep", "long", "characters", "chain", "brackets", "nots", "signs", "list"],
)
def test_an_expression_is_bounded(text: str, refused: bool) -> None:
    """It is refused or read; the parser's own stack holds either way."""
    if refused:
        with pytest.raises(ExpressionError):
            Expression(text)
    else:
        assert Expression(text).bind(TYPES) is not None


def test_texts_that_grow_are_computed_in_parts_and_bounded() -> None:
    """A gigabyte is never made at once: of many rows it is parts, of one row an error."""
    text = " || ".join(["t"] * 100)
    found = Expression(text).bind(TYPES).values(rows_of(t=["x" * 10_000] * 200))
    assert found.nbytes >= 200 * 1_000_000
    with pytest.raises(BadValue, match="larger than"):
        values(text, t=["x", "x" * 1_000_000])


def test_no_pattern_takes_long() -> None:
    """One that would be tried in each way, by an engine that goes back, takes years here."""
    pattern = "%a" * 40 + "b"
    begun = time.monotonic()
    assert values(f"t LIKE '{pattern}'", t=["a" * 20_000, "a" * 60 + "b"]) == [False, True]
    assert time.monotonic() - begun < 10


@given(st.lists(st.none() | st.integers(-3, 3), min_size=1, max_size=8), st.data())
def test_conditions_are_those_of_three_values(
    numbers: list[int | None], data: st.DataObject
) -> None:
    """Random conditions against Python's, where a comparison with NULL is unknown."""

    def make(depth: int) -> tuple[str, Any]:
        kind = data.draw(st.sampled_from(["and", "or", "not", "cmp"] if depth else ["cmp"]))
        if kind == "cmp":
            sign = data.draw(st.sampled_from(["<", "=", "<>", ">="]))
            bound = data.draw(st.integers(-2, 2))
            return f"n {sign} {bound}", lambda n: None if n is None else _holds(n, sign, bound)
        one, f = make(depth - 1)
        if kind == "not":
            return f"NOT ({one})", lambda n: None if f(n) is None else not f(n)
        two, g = make(depth - 1)
        decides = kind == "or"
        return f"({one}) {kind.upper()} ({two})", lambda n: _either(decides, f(n), g(n))

    text, oracle = make(3)
    assert values(text, n=numbers) == [oracle(n) for n in numbers]


def _holds(n: int, sign: str, bound: int) -> bool:
    return {"<": n < bound, "=": n == bound, "<>": n != bound, ">=": n >= bound}[sign]


def _either(decides: bool, one: bool | None, two: bool | None) -> bool | None:
    if decides in (one, two):
        return decides
    return None if None in (one, two) else not decides


@given(
    st.lists(st.decimals(-(10**6), 10**6, places=2), min_size=1, max_size=5),
    st.decimals(D("0.001"), D("99.999"), places=3),
)
def test_decimals_keep_their_digits(numbers: list[Decimal], by: Decimal) -> None:
    """Sum, difference and product, digit by digit."""
    for sign, exact in (("+", D.__add__), ("-", D.__sub__), ("*", D.__mul__)):
        assert values(f"p {sign} {by}", p=numbers) == [exact(n, by) for n in numbers]
