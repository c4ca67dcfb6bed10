"""Staging a batch: decode, fold, one Parquet file."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from actors.contract.effects import LaneMessages, Stage
from actors.contract.messages import BadMessageAt, Staged, StageFailed
from actors.contract.raw_messages import Messages
from actors.staging.staged_tables import ParquetTables
from actors.staging.work import StageWork
from changes.formats import FORMATS
from changes.model.model import OP, Column, FormatOptions, KeyBound, Mode, TableSchema, TargetName
from changes.routes.routing import TargetRoute
from changes.routes.shaping.shape import Shape
from offsets.position import TopicPartition
from tests.changes.formats.debezium.messages import MYSQL, change, envelope, record, wrapped

UPSERT = TargetRoute(TargetName("lake", "s", "t"), Mode.UPSERT, None)
LOG = TargetRoute(TargetName("lake", "s", "log"), Mode.APPEND, None)
SOURCE = TopicPartition("binlog", 0)
OTHER = TopicPartition("binlog", 1)


def message(kind: str, key: int, value: str) -> bytes:
    """A Canal message of one row."""
    return msgspec.json.encode(
        {
            "data": [{"id": str(key), "v": value}], "database": "s", "table": "t", "type": kind,
            "mysqlType": {"id": "int", "v": "varchar(9)"}, "pkNames": ["id"], "isDdl": False,
        }
    )  # fmt: skip


def lane(*values: bytes, source: TopicPartition = SOURCE, start: int = 0) -> LaneMessages:
    """Messages one after another."""
    return LaneMessages(source, Messages.of(list(range(start, start + len(values))), list(values)))


@pytest.fixture
def work() -> StageWork:
    """Canal JSON to Parquet."""
    return StageWork(FORMATS["canal-json"](FormatOptions()), ParquetTables())


def done(answer: Staged | StageFailed) -> Staged:
    """It was staged."""
    assert isinstance(answer, Staged)
    return answer


def test_a_decoder_is_told_the_stored_columns(tmp_path: Path) -> None:
    """With a generation's first batch, for records that tell no types; the rest remember them."""
    work = StageWork(FORMATS["debezium-json"](FormatOptions()), ParquetTables())
    stored = TableSchema((Column("id", pa.int64()), Column("n", pa.float64())), ("id",))
    path = str(tmp_path / "1.parquet")
    for generation, told, kept in ((0, stored, 7), (0, None, 7), (1, None, "7"), (2, stored, 7)):
        request = Stage(UPSERT, (), (lane(change("c", {"id": 7, "n": None})),), generation, told)
        done(work.stage(request, path))
        assert pq.read_table(path)["id"].to_pylist() == [kept]


def test_a_batch_is_folded_and_described(work: StageWork, tmp_path: Path) -> None:
    """The file holds net changes; the write is told its bounds and whether it deletes."""
    path = str(tmp_path / "1.parquet")
    values = [("INSERT", 3, "a"), ("INSERT", 1, "b"), ("UPDATE", 3, "c"), ("DELETE", 9, "")]
    request = Stage(UPSERT, (), (lane(*(message(*value) for value in values)),))
    staged = done(work.stage(request, path))
    rows = pq.read_table(path).to_pylist()
    assert sorted((row["id"], row["v"]) for row in rows if row[OP] == "U") == [(1, "b"), (3, "c")]
    assert (staged.path, staged.rows, staged.changes, staged.has_deletes) == (path, 3, 4, True)
    assert staged.bounds == (KeyBound("id", 1, 9),)
    assert staged.size == Path(path).stat().st_size


def test_pieces_are_folded_again_in_order(work: StageWork, tmp_path: Path) -> None:
    """What was staged behind a write goes into the next one as one batch: the later wins."""
    older, whole = str(tmp_path / "1.parquet"), str(tmp_path / "2.parquet")
    first = lane(message("INSERT", 1, "old"), message("INSERT", 2, "kept"))
    done(work.stage(Stage(UPSERT, (), (first,)), older))
    second = Stage(UPSERT, (older,), (lane(message("UPDATE", 1, "new"), start=2),))
    staged = done(work.stage(second, whole))
    assert {row["id"]: row["v"] for row in pq.read_table(whole).to_pylist()} == {
        1: "new", 2: "kept"
    }  # fmt: skip
    assert staged.changes == 1


def test_pieces_alone_make_a_batch(work: StageWork, tmp_path: Path) -> None:
    """After a long outage the oldest pieces go first, without a new message."""
    older, whole = str(tmp_path / "1.parquet"), str(tmp_path / "2.parquet")
    done(work.stage(Stage(UPSERT, (), (lane(message("INSERT", 1, "a")),)), older))
    staged = done(work.stage(Stage(UPSERT, (older,), ()), whole))
    assert (staged.rows, staged.changes, staged.mode) == (1, 0, Mode.UPSERT)
    assert staged.schema is not None
    assert staged.schema.keys == ("id",)


def test_a_changelog_is_not_folded(work: StageWork, tmp_path: Path) -> None:
    """Every change is a row of its own, of both partitions."""
    lanes = (
        lane(message("INSERT", 1, "a"), message("UPDATE", 1, "b")),
        lane(message("DELETE", 1, "b"), source=OTHER, start=7),
    )
    path = str(tmp_path / "1.parquet")
    staged = done(work.stage(Stage(LOG, (), lanes), path))
    rows = pq.read_table(path).to_pylist()
    assert [(row["_partition"], row["_offset"], row["_op"]) for row in rows] == [
        (0, 0, "I"), (0, 1, "U"), (1, 7, "D")
    ]  # fmt: skip
    assert staged.bounds == ()


def test_a_bad_message_is_named_and_what_came_before_is_staged(
    work: StageWork, tmp_path: Path
) -> None:
    """Nothing of what follows it is in the file, in whatever partition."""
    lanes = (
        lane(message("INSERT", 1, "a"), message("INSERT", 2, "b"), b"{", message("x", 3, "c")),
        lane(message("INSERT", 4, "d"), source=OTHER),
    )
    path = str(tmp_path / "1.parquet")
    staged = done(work.stage(Stage(UPSERT, (), lanes), path))
    assert isinstance(staged.bad, BadMessageAt)
    assert (staged.bad.lane_index, staged.bad.index) == (0, 2)
    assert pq.read_table(path)["id"].to_pylist() == [1, 2]


def test_a_bad_first_message_leaves_no_file(work: StageWork, tmp_path: Path) -> None:
    """There is nothing to write."""
    path = tmp_path / "1.parquet"
    staged = done(work.stage(Stage(UPSERT, (), (lane(b"{"),)), str(path)))
    assert (staged.path, staged.rows, path.exists()) == (None, 0, False)
    assert staged.bad is not None


def test_messages_without_a_row_leave_no_file(work: StageWork, tmp_path: Path) -> None:
    """Canal sends events without data now and then."""
    empty = msgspec.json.encode(
        {"data": [], "database": "s", "table": "t", "type": "INSERT", "pkNames": ["id"]}
    )
    staged = done(work.stage(Stage(UPSERT, (), (lane(empty),)), str(tmp_path / "1.parquet")))
    assert (staged.path, staged.bad) == (None, None)


def test_a_disk_that_takes_nothing_is_an_answer(work: StageWork, tmp_path: Path) -> None:
    """It is tried again, with the same result as if it had gone well at once."""
    request = Stage(UPSERT, (), (lane(message("INSERT", 1, "a")),))
    path = tmp_path / "gone" / "1.parquet"
    failed = work.stage(request, str(path))
    assert isinstance(failed, StageFailed)
    assert str(path) in failed.reason
    path.parent.mkdir()
    assert done(work.stage(request, str(path))).rows == 1


def test_another_era_forgets_the_columns(work: StageWork, tmp_path: Path) -> None:
    """A column that a DDL renamed or dropped is not in the batches that follow."""
    path = str(tmp_path / "1.parquet")
    done(work.stage(Stage(UPSERT, (), (lane(message("INSERT", 1, "a")),)), path))
    renamed = lane(message("INSERT", 2, "b").replace(b'"v"', b'"w"'), start=1)
    staged = done(work.stage(Stage(UPSERT, (), (renamed,), generation=1), path))
    assert staged.schema is not None
    assert [column.name for column in staged.schema.columns] == ["id", "w"]


def test_a_changelog_counts_on_behind_rows_that_were_staged_before(
    work: StageWork, tmp_path: Path
) -> None:
    """Of a message that is written in several parts; a keyed table has no such numbers."""
    path = str(tmp_path / "1.parquet")
    part = LaneMessages(SOURCE, Messages.of([7], [message("INSERT", 1, "a")]), rows_before=3)
    done(work.stage(Stage(LOG, (), (part,)), path))
    (row,) = pq.read_table(path).to_pylist()
    assert (row["_offset"], row["_index"]) == (7, 3)
    done(work.stage(Stage(UPSERT, (), (part,)), path))
    assert "_index" not in pq.read_table(path).column_names


def test_types_are_told_once_and_again_in_another_era(work: StageWork, tmp_path: Path) -> None:
    """As the messages say them; an answer without them says that they are what they were."""
    path = str(tmp_path / "1.parquet")
    told = {"id": "int", "v": "varchar(9)"}
    first = Stage(UPSERT, (), (lane(message("INSERT", 1, "a")),))
    assert done(work.stage(first, path)).declared_types == told
    assert done(work.stage(first, path)).declared_types is None
    wider = message("INSERT", 1, "a").replace(b"varchar(9)", b"varchar(99)")
    grown = Stage(UPSERT, (), (lane(wider),))
    assert done(work.stage(grown, path)).declared_types == {"v": "varchar(99)"}
    assert done(work.stage(Stage(UPSERT, (), first.lanes, 1), path)).declared_types == told


def test_types_that_were_told_are_asked_for_again(work: StageWork, tmp_path: Path) -> None:
    """Of the columns that the rows have: what is known of others is of before."""
    path = str(tmp_path / "1.parquet")
    whole = (lane(message("INSERT", 1, "a")),)
    assert done(work.stage(Stage(UPSERT, (), whole), path)).declared_types is not None
    again = Stage(UPSERT, (), whole, all_types=True)
    assert done(work.stage(again, path)).declared_types == {"id": "int", "v": "varchar(9)"}
    body = msgspec.json.decode(message("INSERT", 1, "a"))
    lacking = body | {"data": [{"id": "1"}], "mysqlType": {"id": "int"}}
    part = Stage(UPSERT, (), (lane(msgspec.json.encode(lacking)),), all_types=True)
    assert done(work.stage(part, path)).declared_types == {"id": "int"}


def test_a_default_beside_a_type_told_otherwise_hides_nothing(tmp_path: Path) -> None:
    """A table that was renamed has no list of columns yet: its types are held against the words."""
    work = StageWork(FORMATS["debezium-json"](FormatOptions()), ParquetTables())
    path, found = str(tmp_path / "1.parquet"), []
    for table, size in (("orders", "20"), ("sales", "5")):
        words = {
            "__debezium.source.column.type": "VARCHAR",
            "__debezium.source.column.length": size,
        }
        row = envelope("c", {"id": 1, "v": "a"}, source=MYSQL | {"table": table})
        value = wrapped(row, {"id": "int32", "v": ("string", None, words)}, f"s.shop.{table}")
        value["schema"]["fields"][1]["fields"][1]["default"] = "b"
        request = Stage(UPSERT, (), (lane(record(value, {"id": 1})),))
        found.append([change.kind for change in done(work.stage(request, path)).column_changes])
    assert found == [["filled"], ["filled", "type"]]


def test_what_inserts_carry_has_the_targets_names(work: StageWork, tmp_path: Path) -> None:
    """Renamed, left out, made of others; earlier calls' rows count, too."""
    shape = Shape(rename=(("v", "w"),), computed=(("twice", "id * 2"),), metadata=("_op",))
    route = TargetRoute(TargetName("lake", "s", "t"), Mode.UPSERT, None, shape=shape)
    path, whole = str(tmp_path / "1.parquet"), message("INSERT", 1, "a")
    body = msgspec.json.decode(whole) | {"data": [{"id": "2"}], "mysqlType": {"id": "int"}}
    bare = msgspec.json.encode(body)
    made = {"id", "twice", "_op"}
    one = Stage(route, (), (lane(whole),))
    assert done(work.stage(one, path)).carried == made | {"w"}
    two = Stage(route, (), (lane(whole), lane(bare, source=OTHER)))
    assert done(work.stage(two, path)).carried == made
