"""The columns of a table, of its target and of the log's last messages are compared before a load
reads anything: what only one side has is refused by name."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from actors.contract.ports import ResettableSink
from changes.model.model import TableName
from daemon.config.config import Config
from daemon.operations.engine.record import JobRequest
from daemon.operations.load.kind import LoadKind
from daemon.operations.load.shown import Shown, shown_columns, unlike
from daemon.operations.load.source_tables import SourceTables
from databases.base.log_end import ReaderPosition
from offsets.position import TopicPartition
from offsets.recovery import Watermarks
from offsets.snapshot import PartitionState, Snapshot, TargetMark
from sources.base.port import LogRecord
from sparkwriter.sinks import sinks_of
from tests.databases.base.servers import PASSWORD, Server
from tests.sources.fake_source import FakeSource

LANE = TopicPartition("binlog", 0)
TARGET = "out.shop.t"


def canal(kind: str, sql: str = "", **row: str) -> bytes:
    """One message of Canal's about ``shop.t``."""
    types = dict.fromkeys(row, "varchar(20)")
    said: dict[str, Any] = {
        "database": "shop", "table": "t", "type": kind, "isDdl": bool(sql), "es": 1, "ts": 1,
        "pkNames": ["id"], "mysqlType": types, "sqlType": dict.fromkeys(row, 12),
        "data": [row], "old": None, "sql": sql, "id": 1,
    }  # fmt: skip
    if kind == "UPDATE":
        said["old"] = [{"id": row["id"]}]
    return json.dumps(said | ({"data": None} if sql else {})).encode()


INSERT = canal("INSERT", id="1", name="a")
PARTIAL = canal("UPDATE", id="1")


class Looking:
    """A pipeline and its log."""

    def __init__(self, folder: Path, log: Sequence[bytes], url: str = "", **route: Any) -> None:
        self.log = FakeSource({LANE: Watermarks(0, 0)})
        self.log.produce(*log)
        pipeline: dict[str, Any] = {
            "topics": ["binlog"], "format": "canal-json", "database": "shop",
            "route": [{"tables": ["shop.*"], "target": "out.{database}.{table}", **route}],
        }  # fmt: skip
        self.config = Config.model_validate({
            "kafka": {"bootstrap.servers": "127.0.0.1:1"},
            "sink": {"out": {"kind": "sqlite", "path": str(folder / "out.db")}},
            "daemon": {"state_dir": str(folder)},
            "database": {"shop": {"url": url or "jdbc:mysql://h", "user": "jobs",
                                  "password": PASSWORD}},
            "pipeline": {"p": pipeline},
        })  # fmt: skip
        self.writers: dict[str, ResettableSink] = {}

    def snapshot(self, pipeline: str) -> Snapshot:
        mark = {TARGET: TargetMark("1", {LANE: 0})}
        return Snapshot("p", "g", partitions={LANE: PartitionState(0)}, targets=mark)

    def source(self, pipeline: str) -> FakeSource:
        return self.log

    def reader_position(self, pipeline: str) -> ReaderPosition:
        return {}

    def sinks(self) -> dict[str, ResettableSink]:
        if not self.writers:
            self.writers = {"out": sinks_of(self.config)["out"].writer()}
        return self.writers


LOGS: dict[str, tuple[list[bytes], Shown]] = {
    "nothing": ([], Shown()),
    "an insert": ([INSERT], Shown(frozenset(("id", "name")), whole=True, rows=True)),
    "a part of a row": ([PARTIAL], Shown(frozenset(("id",)), rows=True)),
    "an insert, then a part": (
        [INSERT, PARTIAL], Shown(frozenset(("id", "name")), whole=True, rows=True)
    ),
    "the last insert is what the stream has": (
        [canal("INSERT", id="1", gone="a"), INSERT],
        Shown(frozenset(("id", "name")), whole=True, rows=True),
    ),
    "a column that a statement adds": (
        [INSERT, canal("ALTER", "ALTER TABLE t ADD COLUMN c INT")],
        Shown(frozenset(("id", "name", "c")), whole=True, rows=True),
    ),
    "columns that a statement renames and drops": (
        [INSERT, canal("ALTER", "ALTER TABLE t RENAME COLUMN id TO k, DROP COLUMN name")],
        Shown(frozenset(("k",)), whole=True, rows=True),
    ),
    "a statement that is not followed": (
        [INSERT, canal("ALTER", "ALTER TABLE t ADD COLUMN c INT DEFAULT (RAND())")],
        Shown(unread=True),
    ),
    "what is no message": ([INSERT, b"{"], Shown(frozenset(("id", "name")), True, True)),
}  # fmt: skip


@pytest.mark.parametrize("name", LOGS)
def test_what_the_last_messages_tell(name: str, tmp_path: Path) -> None:
    """Of a target; of others nothing."""
    log, expected = LOGS[name]
    found = shown_columns(Looking(tmp_path, log), "p", [TARGET, "out.shop.other"])
    assert found == {TARGET: expected, "out.shop.other": Shown()}


def test_inserts_of_a_minimal_log_are_parts(tmp_path: Path) -> None:
    """A column that one lacks took its default, and others have shown it."""
    log = [INSERT, canal("INSERT", id="2"), canal("INSERT", id="3", pin="x")]
    found = shown_columns(Looking(tmp_path, log), "p", [TARGET], parts=[TARGET])
    assert found == {TARGET: Shown(frozenset(("id", "name", "pin")), rows=True)}


@pytest.mark.parametrize("quiet", [0, 1])
def test_a_partition_that_was_quiet_for_long_tells_less(quiet: int, tmp_path: Path) -> None:
    """Whichever it is: a column that the table has lost, or got, since its last message would keep
    the table from being loaded, and no change of a row would help."""
    look = Looking(tmp_path, [])
    old, new = canal("INSERT", id="1", gone="a"), canal("INSERT", id="2", name="b", c="")
    for number, (value, time_ms) in ((quiet, (old, 1000)), (1 - quiet, (new, 2000))):
        lane = TopicPartition("binlog", number)
        look.log.records[lane] = [LogRecord(0, None, value, (), time_ms)]
    look.log.logs |= dict.fromkeys(look.log.records, Watermarks(0, 1))
    found = shown_columns(look, "p", [TARGET])[TARGET]
    assert found == Shown(frozenset(("id", "name", "c")), whole=True, rows=True)


WHOLE = Shown(frozenset(("id", "name")), whole=True, rows=True)
COMPARED: dict[str, tuple[list[str], list[str] | None, Shown, str]] = {
    "equal, case aside": (["ID", "Name"], ["id", "name"], WHOLE, ""),
    "left out": (["id", "name", "pin"], ["id", "name"], WHOLE, "has the column pin, which neither"),
    "left out, and quiet": (["id", "pin"], ["id"], Shown(), "has the column pin, which neither"),
    "left out, and no target": (["id", "name", "pin"], None, WHOLE, "the column pin"),
    "nothing is known": (["id", "pin"], None, Shown(), ""),
    "new in the stream": (["id", "name", "c"], ["id"], WHOLE.row(["c"], False), ""),
    "images have a part": (["id", "pin"], ["id"], Shown(frozenset(("id",)), rows=True), ""),
    "an unread statement": (["id", "pin"], ["id"], Shown(unread=True), ""),
    "a sign is replaced": (["id", "e-mail"], ["id", "e_mail"], Shown(), "e-mail is e_mail in"),
    "camel case": (["id", "user_name"], None, Shown(frozenset(("id", "userName")), True, True),
                   "column user_name is userName in the stream"),
    "added by the reader": (["id"], ["id"], Shown(frozenset(("id", "__op")), True, True),
                            "the stream has the column __op, which the table has not"),
    "kept by the target": (["id", "name"], ["id", "name", "dropped"], WHOLE, ""),
}  # fmt: skip


@pytest.mark.parametrize("name", COMPARED)
def test_columns_that_are_not_the_targets(name: str) -> None:
    """Excluded, renamed, added: each by its name, with a way out."""
    table, target, shown, expected = COMPARED[name]
    found = list(unlike(table, target, shown))
    assert (expected in found[0] and "`columns`" in found[0]) if expected else found == []


@pytest.mark.parametrize(
    ("renames", "expected"),
    [
        ({}, "the table's column e-mail is e_mail in the stream"),
        ({"e-mail": "e_mail"}, ""),
        ({"e-mail": "email"}, "the table's column e-mail is e_mail in the stream"),
        ({"e-mail": "mail"}, "the table's column e-mail is e_mail in the stream"),
        ({"e-mail": "e_mail", "name": "title"}, "the stream has the column name by its own name"),
        ({"e-mail": "e_mail", "pin": "code"}, "column code, which is to be the table's pin"),
    ],
)
def test_a_renamed_column_is_the_streams_or_refused(renames: dict[str, str], expected: str) -> None:
    """The refusal names the line of the route that leads out, also where the line is wrong."""
    columns = ["id", "e-mail", "name", *(["pin"] if "pin" in renames else [])]
    table = [renames.get(name, name) for name in columns]
    shown = Shown(frozenset(("id", "e_mail", "name")), whole=True, rows=True)
    found = list(unlike(table, None, shown, tuple(renames.items())))
    assert (expected in found[0]) if expected else found == []
    if "is e_mail" in expected:
        assert 'reader_renames = { "e-mail" = "e_mail" }' in found[0]


@pytest.mark.parametrize(
    ("own", "other", "expected"),
    [
        ("café", "caf_", True), ("caféX", "café_x", True), ("用户", "用_户", True),
        ("用户", "金额", False), ("id用户", "id金额", False), ("用户", "__", False),
    ],
)  # fmt: skip
def test_no_other_column_is_taken_for_the_renamed_one(own: str, other: str, expected: bool) -> None:
    """A wrong name in the advice would load one column into another."""
    lines = unlike(["id", own], None, Shown(frozenset(("id", other)), whole=True, rows=True))
    assert ("reader_renames" in next(lines)) is expected


@pytest.mark.parametrize(("own", "other"), [("用户-名", "用户_名"), ('a"🙂-b', 'a"🙂_b')])
def test_the_line_that_leads_out_is_toml(own: str, other: str) -> None:
    """Whatever the names are: it can be pasted into the route."""
    lines = unlike(["id", own], None, Shown(frozenset(("id", other)), whole=True, rows=True))
    (pasted,) = re.findall("`(reader_renames = .*?)`", next(lines))
    assert tomllib.loads(pasted) == {"reader_renames": {own: other}}


@pytest.fixture
def server(servers: dict[str, Server]) -> Iterator[Server]:
    """A table with a column of which the stream says nothing."""
    found = servers["mariadb"]
    found.run([
        "CREATE OR REPLACE SCHEMA shop",
        "CREATE TABLE shop.t (id VARCHAR(20) PRIMARY KEY, name VARCHAR(20), pin VARCHAR(20))",
        "INSERT INTO shop.t VALUES ('1', 'a', 'secret')",
    ])  # fmt: skip
    yield found
    found.run(["DROP SCHEMA shop"])


def refused(look: Looking) -> list[str]:
    """Why a load of the table is refused."""
    wanted = JobRequest("load", "p", (TARGET,), {}, "command")
    return [line for line in LoadKind().plan(look, wanted).refusals if line.startswith(TARGET)]


@pytest.mark.integration
def test_a_plan_says_where_nothing_is_known_of_the_stream(server: Server, tmp_path: Path) -> None:
    """Before the first row of a table nobody can say what its reader leaves out."""
    url = f"jdbc:mariadb://127.0.0.1:{server.port}/"
    wanted = JobRequest("load", "p", (TARGET,), {}, "command")
    said = LoadKind().plan(Looking(tmp_path, [], url), wanted).lines
    assert any("the log's last messages have no row of it" in line for line in said)
    said = LoadKind().plan(Looking(tmp_path, [INSERT], url, columns=["id", "name"]), wanted).lines
    assert not any("no row of it" in line for line in said)


@pytest.mark.integration
def test_a_plan_and_and_a_start_refuse_a_column_that_the_stream_leaves_out(
    server: Server, tmp_path: Path
) -> None:
    """It would come in, and never change. ``columns`` in the route leads out."""
    url = f"jdbc:mariadb://127.0.0.1:{server.port}/"
    (why,) = refused(Looking(tmp_path, [INSERT], url))
    assert why.startswith(f"{TARGET}: the table has the column pin, which neither")
    table = {TARGET: TableName("shop", "t")}
    tables = SourceTables(Looking(tmp_path, [INSERT], url), "p")  # type: ignore[arg-type]
    assert "the column pin" in tables.unlike(table)[TARGET]
    tables.close()
    out = Looking(tmp_path, [INSERT], url, columns=["id", "name"])
    assert refused(out) == []
    tables = SourceTables(out, "p")  # type: ignore[arg-type]
    assert tables.unlike(table) == {}
    assert [one.name for one in tables.describe(table[TARGET], TARGET).schema.columns] == [
        "id", "name",
    ]  # fmt: skip
    tables.close()


@pytest.fixture
def minimal(server: Server) -> Iterator[Server]:
    server.run(["SET GLOBAL binlog_row_image = 'MINIMAL'"])
    yield server
    server.run(["SET GLOBAL binlog_row_image = 'FULL'"])


@pytest.mark.integration
def test_a_default_that_a_minimal_log_leaves_out_refuses_no_load(
    minimal: Server, tmp_path: Path
) -> None:
    """Only the server's setting tells such an insert from one of a reader that leaves columns out:
    the plan says that nothing is known."""
    url = f"jdbc:mariadb://127.0.0.1:{minimal.port}/"
    look = Looking(tmp_path, [INSERT], url)
    assert refused(look) == []
    said = LoadKind().plan(look, JobRequest("load", "p", (TARGET,), {}, "command")).lines
    assert any("binlog_row_image is not FULL" in line for line in said)
    tables = SourceTables(look, "p")  # type: ignore[arg-type]
    assert tables.unlike({TARGET: TableName("shop", "t")}) == {}
    tables.close()
