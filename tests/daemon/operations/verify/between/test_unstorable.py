"""NULLs in place of what a database does not hold."""

from __future__ import annotations

import struct

import pytest

from changes.sql.forms import Form
from daemon.operations.verify.between.unstorable import Nulls, holds


def bits(number: float) -> str:
    return str(struct.unpack(">q", struct.pack(">d", number))[0])


@pytest.mark.parametrize(
    ("form", "text", "without"),
    [
        (Form.TEXT, "a\0b", {"postgresql"}),
        (Form.TEXT, "plain", set()),
        (Form.BITS, bits(float("nan")), {"mysql", "mariadb"}),
        (Form.BITS, bits(float("-inf")), {"mysql", "mariadb"}),
        (Form.BITS, bits(-0.0), {"mariadb"}),
        (Form.BITS, bits(0.0), set()),
        (Form.DATE, "0000-12-31", {"postgresql", "mysql", "mariadb"}),
        (Form.LOCAL, "10000-01-01 00:00:00.000000", {"postgresql", "mysql", "mariadb"}),
        (Form.INSTANT, "9999-12-31 23:59:59.999999", set()),
        (Form.DECIMAL, "1.50", set()),
    ],
)
def test_what_which_database_does_not_hold(form: Form, text: str, without: set[str]) -> None:
    kinds = ("postgresql", "mysql", "mariadb")
    assert {kind for kind in kinds if not holds(kind, form, text)} == without


def test_only_such_a_null_is_no_difference() -> None:
    """Not another NULL, not another value, not on the other side, not without the setting."""
    nulls = Nulls((None, "postgresql"), (Form.WHOLE, Form.TEXT))
    assert nulls.alike(("1", "a\0b"), ("1", None))
    assert not nulls.alike(("1", "plain"), ("1", None))
    assert not nulls.alike(("1", "a\0b"), ("1", "ab"))
    assert not nulls.alike(("1", "a\0b"), ("2", None))
    assert not nulls.alike(("1", None), ("1", "a\0b"))
    assert not nulls.alike(("1", None), None)
    assert nulls.alike(None, None)
    assert not Nulls((None, None), nulls.forms).alike(("1", "a\0b"), ("1", None))
    (note,) = nulls.notes(("lake.s.t", "pg.s.t"))
    assert note.startswith("not compared: what pg.s.t has NULL for")
