"""What a glance at a Canal message tells, and what is refused there."""

from __future__ import annotations

import pytest

from changes.formats import FORMATS
from changes.formats.canal.json import CanalJson
from changes.model.model import BadMessage, FormatOptions, Head, Kind, TableName
from tests.changes.formats.canal.messages import message

CANAL = CanalJson(FormatOptions())


@pytest.mark.parametrize("kind", ["INSERT", "UPDATE", "DELETE", "INIT"])
def test_rows(kind: str) -> None:
    """Row changes are told with their table."""
    assert CANAL.peek(message(kind)) == Head(Kind.ROWS, TableName("shop", "orders"))


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


@pytest.mark.parametrize(
    "kind", ["QUERY", "GTID", "XACOMMIT", "XAROLLBACK", "MHEARTBEAT", "TIDB_WATERMARK"]
)
def test_nothing_to_apply(kind: str) -> None:
    """The text of a statement, marks and heartbeats change no row; they may name no table."""
    assert CANAL.peek(message(kind, None, drop=["table", "database"])) == Head(Kind.NOTHING, None)


def test_statement_text_without_ddl_mark_is_not_ddl() -> None:
    """A rows-query event quotes SQL that must not be executed, even if it reads like DDL."""
    value = message("QUERY", None, sql="TRUNCATE TABLE orders")
    assert CANAL.peek(value).kind is Kind.NOTHING


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (b"\xff\xfe\x00garbage", "not a Canal message"),
        (b"{", "not a Canal message"),
        (b"[]", "not a Canal message"),
        (b"null", "not a Canal message"),
        (b'"text"', "not a Canal message"),
        (b"[" * 100_000, "not a Canal message"),
        (b"{}", "without a type"),
        (message(table=""), "without a table"),
        (message(drop=["table"]), "without a table"),
        (message(table=None), "without a table"),
        (message(drop=["database"]), "without a database"),
        (message(database=""), "without a database"),
        (message(table=7), r"\$\.table"),
        (message(database=["shop"]), r"\$\.database"),
        (message(drop=["type"]), "without a type"),
        (message(type=3), r"\$\.type"),
        (message("UPSERT"), "unknown type 'UPSERT'"),
        (message("insert"), "unknown type 'insert'"),
        (message(database="sh\udc80op").replace(b"\\udc80", b"\xff"), "not a Canal message"),
    ],
)
def test_bad_messages(value: bytes | None, said: str) -> None:
    """What can't be a Canal message is refused with one clear line."""
    with pytest.raises(BadMessage, match=said) as refused:
        CANAL.peek(value)
    assert "\n" not in str(refused.value)


def test_registry() -> None:
    """The format is found by its name."""
    assert FORMATS["canal-json"](FormatOptions()).name == "canal-json"


def test_unknown_zone() -> None:
    """A time zone that nobody knows is refused when the format is made."""
    with pytest.raises(ValueError, match="Mars/Olympus"):
        CanalJson(FormatOptions(time_zone="Mars/Olympus"))
