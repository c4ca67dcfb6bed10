"""Columns that change in the rows, of which no statement told: reported once, and the mark."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from actors.contract import messages as msg
from actors.target.divergence import doubts_of
from changes.formats.debezium.types import Field, source_words
from changes.formats.engine.format import pack
from changes.model.model import Column, Mode, TableName, TableSchema
from changes.routes.routing import Route
from changes.sql.mysql.ddl import read_ddl
from tests.actors.target.processor_rig import ProcessorRig, canal

T = "lake.db.t"
FIELDS = {"id": "int32", "name": "string"}


def debezium(row: Mapping[str, Any], fields: Mapping[str, Any], table: str = "t") -> bytes:
    """An insert into a table of PostgreSQL whose schema lists these columns: types, or members."""
    told = {name: {"type": t} if isinstance(t, str) else t for name, t in fields.items()}
    struct = {
        "type": "struct", "optional": True, "name": f"s.db.{table}.Value",
        "fields": [{"optional": True, "field": name, **each} for name, each in told.items()],
    }  # fmt: skip
    source = {"connector": "postgresql", "schema": "db", "table": table, "ts_ms": 1}
    envelope = {"before": None, "after": dict(row), "op": "c", "source": source, "ts_ms": 1}
    schema = {"type": "struct", "name": f"s.db.{table}.Envelope", "fields": [
        {**struct, "field": "before"}, {**struct, "field": "after"},
    ]}  # fmt: skip
    fields_of_key = [{"type": "int32", "optional": False, "field": "id"}]
    key = {"schema": {"type": "struct", "fields": fields_of_key}, "payload": {"id": row["id"]}}
    value = {"schema": schema, "payload": envelope}
    return pack(*(json.dumps(each, separators=(",", ":")).encode() for each in (key, value)))


def row(number: int, **more: Any) -> dict[str, Any]:
    return {"id": number, "name": "a"} | more


class Stream:
    """A table of PostgreSQL: each batch is written before the next comes."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.rig = ProcessorRig(folder, "debezium-json", **settings)
        self.offset = 0

    def send(self, *rows: tuple[Mapping[str, Any], Mapping[str, Any]], table: str = "t") -> None:
        messages = []
        for values, fields in rows:
            self.offset += 1
            messages.append((self.offset, debezium(values, fields, table)))
        self.rig.send(table, *messages)
        self.rig.settle()

    @property
    def reported(self) -> list[str]:
        return self.rig.logged("columns_changed")

    @property
    def mark(self) -> str | None:
        return self.rig.states[T].rows_may_differ


@pytest.fixture
def stream(tmp_path: Path) -> Stream:
    """A table with one row."""
    stream = Stream(tmp_path)
    stream.send((row(1), FIELDS))
    assert (stream.reported, stream.mark) == ([], None)
    return stream


WIDE = FIELDS | {"n": "int32"}


@pytest.mark.parametrize(
    ("now", "values", "what"),
    [
        (WIDE, {"n": 5}, "column n is new"),
        ({"id": "int32"}, {}, "column name is gone"),
        ({"id": "int64", "name": "string"}, {}, "column id from int32 to int64"),
        ({"id": "int32", "name": "bytes"}, {"name": "YQ=="}, None),
    ],
)
def test_a_change_is_one_warning_and_the_mark(
    stream: Stream, now: Mapping[str, str], values: Mapping[str, Any], what: str | None
) -> None:
    """ADD COLUMN with a default, DROP, ALTER TYPE … USING: no statement of it ever comes.

    What no lake's type can follow is refused by the sink, by name, as it was.
    """
    both = {name: value for name, value in row(2, **values).items() if name in now}
    stream.send((both, now))
    stream.send((both | {"id": 3}, now), (both | {"id": 4}, now))
    if what is None:
        assert stream.rig.logged("columns_differ")
        return
    told = f"db.t: {what} up to binlog:0 offset 2"
    assert (stream.reported, stream.mark) == ([told], told)


def test_a_change_within_one_batch_is_seen(tmp_path: Path) -> None:
    """Also in the first one of a table, and where the column is there again at its end."""
    stream = Stream(tmp_path)
    stream.send((row(1), FIELDS), ({"id": 2}, {"id": "int32"}), (row(3), FIELDS))
    assert [each.split(" up to")[0] for each in stream.reported] == [
        "db.t: column name is gone",
        "db.t: column name is new",
    ]
    assert stream.mark is not None


def test_a_change_in_front_of_the_first_row_marks_no_empty_table(stream: Stream) -> None:
    """TRUNCATE, ALTER, then rows: none of before it is left. Rows between them are."""
    stream.rig.rows[T].clear()
    stream.send((row(2, n=1), WIDE), (row(3, n=1), WIDE))
    assert (len(stream.reported), stream.mark) == (1, None)
    stream.rig.rows[T].clear()
    stream.send((row(4, n=1), WIDE), (row(5), FIELDS))
    assert stream.mark is not None


@pytest.mark.parametrize("now", [WIDE, FIELDS | {"id": "int64"}])
def test_a_change_behind_a_file_that_waits_is_amid_the_write(tmp_path: Path, now: Any) -> None:
    """Rows from before it, in a file of their own, are written together with it."""
    stream = Stream(tmp_path, memory_bytes=1)
    rig = stream.rig
    stream.send((row(1), FIELDS))
    for offset, fields in ((2, FIELDS), (3, FIELDS), (4, now)):
        rig.send("t", (offset, debezium(row(offset), fields)))
        rig.tick()
    rig.write()
    rig.rows[T].clear()  # as if the rows so far had been deleted
    rig.settle()
    assert (sorted(rig.rows[T]), len(rig.written)) == ([(3,), (4,)], 3)
    assert stream.mark == stream.reported[0]


def test_the_former_list_that_comes_again_is_seen_again(stream: Stream) -> None:
    """Dropped and recreated with other values: each time anew, once the table was filled."""
    stream.send(({"id": 2}, {"id": "int32"}), (row(3), FIELDS))
    first = len(stream.reported)
    stream.send(({"id": 4}, {"id": "int32"}))
    assert len(stream.reported) == first + 1


def test_a_column_that_came_while_nobody_ran_is_seen(stream: Stream, tmp_path: Path) -> None:
    """By what the table in the lake has: the process remembers nothing."""
    stream.rig.recorded = {}
    stream.rig.start()
    stream.send((row(2, n=1), WIDE))
    assert stream.reported == ["lake.db.t: column n is new up to binlog:0 offset 2"]
    stream.rig.logs.clear()
    stream.rig.start()
    stream.send((row(3, n=1), WIDE))
    assert stream.reported == []


def test_a_write_that_is_given_up_leaves_the_change_to_the_next(stream: Stream) -> None:
    """The mark comes with the rows that are written in the end, whoever's they are."""
    rig = stream.rig
    rig.send("t", (2, debezium(row(2, n=1), WIDE)))
    rig.tick()
    write = rig.work.popleft()
    rig.feed(msg.Failed(write.batch.target, msg.FailureKind.STRAGGLER, "moved"))
    assert (stream.mark, len(stream.reported)) == (None, 1)
    rig.epoch += 1
    stream.offset = 1
    stream.send((row(2, n=1), WIDE))
    assert stream.mark == stream.reported[0]
    assert len(stream.reported) == 1


def test_a_value_that_was_not_sent_is_no_column_that_is_gone(stream: Stream) -> None:
    """PostgreSQL's unchanged TOAST: the column is in the list, a placeholder in the row."""
    update = debezium(row(1, name="__debezium_unavailable_value"), FIELDS)
    stream.offset += 1
    stream.rig.send("t", (stream.offset, update.replace(b'"op":"c"', b'"op":"u"')))
    stream.rig.settle()
    assert (stream.reported, stream.mark) == ([], None)


def test_tables_that_share_a_target_may_have_other_columns(tmp_path: Path) -> None:
    """Each is compared with itself."""
    routes = (Route(("*",), (), "lake.db.t", Mode.UPSERT, None),)
    stream = Stream(tmp_path, routes=routes)
    for number in range(3):
        stream.send((row(number), FIELDS), table="a")
        stream.send((row(number + 10, n=1), WIDE), table="b")
    assert (stream.reported, stream.mark) == ([], None)
    stream.send((row(9, n=1), WIDE), table="a")
    assert [each.split(" up to")[0] for each in stream.reported] == ["db.a: column n is new"]
    assert stream.mark == stream.reported[0]


def test_a_changelog_holds_what_happened(tmp_path: Path) -> None:
    """Its stored rows are the source's events of before."""
    routes = (Route(("*",), (), "lake.{database}.{table}", Mode.APPEND, None),)
    stream = Stream(tmp_path, routes=routes)
    stream.send((row(1), FIELDS), (row(2, n=1), WIDE))
    assert stream.reported == []


# --- formats that tell types and not all columns


def statement(sql: str) -> bytes:
    body = {"database": "db", "table": "t", "type": "ALTER", "isDdl": True, "sql": sql}
    return json.dumps(body).encode()


def typed(key: int, words: str) -> bytes:
    return canal("t", key, "a", mysqlType={"id": "int(11)", "name": words})


def test_types_that_rows_tell_otherwise(tmp_path: Path) -> None:
    """Statements filtered out of the stream: a type that may not hold all that the former held."""
    rig = ProcessorRig(tmp_path)
    for offset, words in enumerate(("varchar(9)", "varchar(20)", "varchar(5)", "varchar(5)"), 1):
        rig.send("t", (offset, typed(offset, words)))
        rig.settle()
    what = "lake.db.t: column name from varchar(20) to varchar(5) up to binlog:0 offset 3"
    assert rig.logged("columns_changed") == [what]
    assert rig.states[T].rows_may_differ == what


def test_what_a_statement_told_is_no_change(tmp_path: Path) -> None:
    """Its own mark says it, or there is nothing to say."""
    rig = ProcessorRig(tmp_path)
    rig.send("t", (1, typed(1, "varchar(20)")))
    rig.settle()
    rig.send("t", (2, statement("ALTER TABLE t MODIFY name varchar(5)")), ddl=True)
    rig.send("t", (3, typed(2, "varchar(5)")))
    rig.settle()
    assert rig.logged("columns_changed") == []
    assert len(rig.logged("rows_may_differ")) == 1


def test_rows_that_lack_columns_from_the_first_on(tmp_path: Path) -> None:
    """MINIMAL images: what no row of the first batch told is NULL in the table, and is told; a
    column that is only absent later is not gone."""
    rig = ProcessorRig(tmp_path)
    lacking = canal("t", 1, data=[{"id": "1"}])
    rig.send("t", (1, lacking), (2, canal("t", 2, "b")))
    rig.settle()
    what = "lake.db.t: column name is missing in first rows up to binlog:0 offset 2"
    assert rig.logged("columns_changed") == [what]
    rig.send("t", (3, canal("t", 2, type="UPDATE", data=[{"id": "2"}], old=[{}])))
    rig.settle()
    assert rig.logged("columns_changed") == [what]


def enumeration(allowed: str, name: str = "Enum") -> dict[str, Any]:
    """A column whose schema lists its labels."""
    parameters = {"allowed": allowed}
    return {"type": "string", "name": f"io.debezium.data.{name}", "parameters": parameters}


@pytest.mark.parametrize(
    ("name", "after", "told"),
    [
        ("Enum", "blue,ok", True),  # renamed: stored rows have the new name, without an event
        ("Enum", "ok", True),
        ("Enum", "sad,ok,glad", False),
        ("Enum", "glad,sad,ok", False),
        ("EnumSet", "sad,ok,glad", False),
        ("EnumSet", "ok,sad", True),  # stored rows show them in the new order
        ("Enum", "sad,meh,ok", True),  # it may be "sad,ok" that is renamed
        ("Enum", "ok,sad", True),  # the same
        ("Enum", "sad,ok, not at all", True),  # labels with commas, as it looks
        ("Enum", "sad,ok,ok", True),
    ],
)
def test_labels_of_an_enumeration(tmp_path: Path, name: str, after: str, told: bool) -> None:
    """One that went proves a change of stored rows; one that came changes none."""
    stream = Stream(tmp_path)
    stream.send((row(1, feel="ok"), FIELDS | {"feel": enumeration("sad,ok", name)}))
    stream.send((row(2, feel="ok"), FIELDS | {"feel": enumeration(after, name)}))
    assert len(stream.reported) == told
    assert ("column feel from" in (stream.mark or "")) == told


@pytest.mark.parametrize(
    ("words", "told"), [("'new','it''s','back'", False), ("'new','back'", True)]
)
def test_a_statement_that_adds_labels_changes_no_stored_row(words: str, told: bool) -> None:
    """The labels that rows declare say what there was; without them it would be any text."""
    field = Field("string", "s", "io.debezium.data.Enum", {"allowed": "new,it's"})
    known, stored = source_words(field), TableSchema((Column("s", pa.string()),), ())
    assert known is not None
    (ddl,) = read_ddl(f"ALTER TABLE t MODIFY s ENUM({words})", TableName("db", "t"))
    assert bool(list(doubts_of(ddl, {"s": known}, stored, "", first=True))) == told
