"""The folder of schemas is lost or can't be read while the daemon runs: its messages wait."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from actors.contract.effects import LaneMessages, Stage
from actors.contract.messages import Staged, StageFailed
from actors.contract.raw_messages import Messages
from actors.staging.staged_tables import ParquetTables
from actors.staging.work import StageWork
from changes.formats.engine.format import Format, pack
from changes.formats.wire.format import Debezium, Upsert
from changes.model.model import BadMessage, Mode, TargetName
from changes.routes.routing import TargetRoute
from offsets.position import TopicPartition
from tests.changes.formats.wire.records import Kept, json_record, record_of

ROUTE = TargetRoute(TargetName("lake", "s", "t"), Mode.UPSERT, None)
NAMES = {"default_database": "shop", "default_table": "orders"}
DEBEZIUM = "debezium"


def schemas(kept: Kept) -> Path:
    return kept.registry.folder


def damage(folder: Path) -> None:
    for file in folder.iterdir():
        file.write_bytes(b"\0")


def unreadable(folder: Path) -> None:
    """As root one reads any file: a folder in a file's place is none."""
    for file in folder.iterdir():
        file.unlink()
        file.mkdir()


def written(kept: Kept, name: str) -> tuple[Format, bytes]:
    if name == DEBEZIUM:
        record = kept.as_avro(json_record("c", {"id": 1, "name": "a"}))
        return Debezium(kept.options()), record
    schema = record_of("long", name="Row")
    return Upsert(kept.options(**NAMES)), pack(kept.avro(schema, {"a": 1}), None)


def staged(format_: Format, value: bytes, path: Path) -> Staged | StageFailed:
    lane = LaneMessages(TopicPartition("t", 0), Messages.of([5], [value]))
    return StageWork(format_, ParquetTables()).stage(Stage(ROUTE, (), (lane,)), str(path))


@pytest.mark.parametrize("name", [DEBEZIUM, "upsert"])
@pytest.mark.parametrize("lose", [shutil.rmtree, damage, unreadable])
def test_a_process_that_begins_waits_for_them(
    tmp_path: Path, name: str, lose: Callable[[Path], None]
) -> None:
    """A record that was dispatched is good: it is no dead letter, and staged once they are back."""
    kept = Kept(tmp_path / "schemas")
    format_, value = written(kept, name)
    saved = shutil.copytree(schemas(kept), tmp_path / "saved")
    lose(schemas(kept))
    failed = staged(format_, value, tmp_path / "f")
    assert isinstance(failed, StageFailed)
    assert "The folder of schemas was lost" in failed.reason
    shutil.rmtree(schemas(kept), ignore_errors=True)
    shutil.copytree(saved, schemas(kept))
    found = staged(format_, value, tmp_path / "f")
    assert isinstance(found, Staged)
    assert (found.rows, found.bad) == (1, None)


@pytest.mark.parametrize("name", [DEBEZIUM, "upsert"])
def test_a_schema_that_never_came_is_a_bad_record_before_that(tmp_path: Path, name: str) -> None:
    """Where heads are read: so none of it is ever dispatched, and good ones before it are."""
    kept = Kept(tmp_path / "schemas")
    format_, value = written(kept, name)
    lost = pack(b"\0\0\0\0\x63\2", b"\0\0\0\0\x63\2")
    heads = format_.heads([value, lost])
    next(heads)
    with pytest.raises(BadMessage, match="schema id 99 is not among those that are kept"):
        next(heads)
