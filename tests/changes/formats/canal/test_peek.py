"""What a glance at a Canal message tells, and what is refused there."""

from __future__ import annotations

import pytest

from changes.formats import FORMATS
from changes.formats.canal.json import CanalJson
from changes.model.model import FormatOptions, Head, Kind
from tests.changes.formats.canal.messages import message

CANAL = CanalJson(FormatOptions())


@pytest.mark.parametrize(
    "kind", ["CREATE", "ALTER", "ERASE", "TRUNCATE", "RENAME", "CINDEX", "DINDEX"]
)
def test_statements(kind: str) -> None:
    """Statements about a table's shape are DDL, whether they are marked so or not."""
    assert CANAL.peek(message(kind, None, isDdl=True)) == Head(Kind.DDL, None)
    assert CANAL.peek(message(kind, None)) == Head(Kind.DDL, None)


def test_query_marked_as_ddl() -> None:
    """CREATE DATABASE and its like come as QUERY with isDdl, and without a table."""
    assert CANAL.peek(message("QUERY", None, isDdl=True, table="")).kind is Kind.DDL


def test_registry() -> None:
    """The format is found by its name."""
    assert FORMATS["canal-json"](FormatOptions()).name == "canal-json"


def test_unknown_zone() -> None:
    """A time zone that nobody knows is refused when the format is made."""
    with pytest.raises(ValueError, match="Mars/Olympus"):
        CanalJson(FormatOptions(time_zone="Mars/Olympus"))
