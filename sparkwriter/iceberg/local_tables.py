"""Tables of a lake on this machine, without Java: where the catalog says that their metadata is,
and which states they have had."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from changes.model.model import TargetName
from offsets.fence import Marks
from offsets.position import TopicPartition
from sparkwriter.kit.queries import NoAnswer, NoTable, Since

HWM = "binlogd.hwm"
"""Summary entry of a snapshot: the marks of all lanes of the table, as ``Marks.text`` has them."""

_SQLITE = "jdbc:sqlite:"
_NAMED = "SELECT metadata_location FROM iceberg_tables WHERE (catalog_name, table_namespace, table_name) = (?, ?, ?)"  # noqa: E501
_ALL = "SELECT table_namespace || '.' || table_name FROM iceberg_tables WHERE catalog_name = ? ORDER BY 1"  # noqa: E501
State = int | datetime | None
"""Of one table: a snapshot's id, a time, None: the present one."""

_MOST = 20
"""Tables that are named where one is not there."""


def metadata_of(catalog: Mapping[str, str], target: TargetName) -> Path:
    """The file with a table's metadata as it is now. Raises NoAnswer."""
    kind, uri = catalog.get("type"), catalog.get("uri", "")
    if kind == "jdbc" and uri.startswith(_SQLITE):
        return _in_file(Path(uri.removeprefix(_SQLITE).removeprefix("file:")), target)
    if kind == "hadoop":
        return _in_folder(_local(catalog.get("warehouse", ""), target), target)
    raise NoAnswer(
        f"sink {target.sink}: its catalog (type = {kind}) is not on this machine. `binlogd query` "
        "reads lakes whose catalog is a file of SQLite or a folder; other readers of Iceberg "
        "read the others"
    )


def _in_file(path: Path, target: TargetName) -> Path:
    """By the catalog's file."""
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as file:
            found = file.execute(_NAMED, target).fetchone()
            others = [str(name) for (name,) in file.execute(_ALL, (target.sink,))]
    except sqlite3.Error as error:
        raise NoAnswer(f"the catalog {path} can't be read: {error}") from error
    if found is None:
        more = ", …" if len(others) > _MOST else ""
        there = ", ".join(f"{target.sink}.{name}" for name in others[:_MOST]) or "none"
        raise NoTable(f"{target} is not there; tables: {there}{more}")
    return _local(str(found[0]), target)


def _in_folder(warehouse: Path, target: TargetName) -> Path:
    """By the folder's own hint, which names the newest version."""
    folder = warehouse.joinpath(*target.namespace.split("."), target.table, "metadata")
    try:
        version = (folder / "version-hint.text").read_text().strip()
    except FileNotFoundError as error:
        raise NoTable(f"{target} is not there: {error.filename}: {error.strerror}") from error
    except OSError as error:
        raise NoAnswer(f"{target} can't be read: {error.filename}: {error.strerror}") from error
    return folder / f"v{version}.metadata.json"


def _local(location: str, target: TargetName) -> Path:
    parts = urlsplit(location)
    if parts.scheme not in ("", "file") or parts.netloc:
        raise NoAnswer(
            f"{target} is at {location}: `binlogd query` reads files of this machine; "
            "other readers of Iceberg read it"
        )
    return Path(unquote(parts.path) if parts.scheme else location)


def snapshot_of(path: Path, target: TargetName, at: State) -> int | None:
    """The id of the state that was current then; None: the present one. Raises NoAnswer."""
    if at is None:
        return None
    metadata = _read(path, target)
    kept = {int(each["snapshot-id"]) for each in metadata.get("snapshots", ())}
    log = [
        (int(each["timestamp-ms"]), int(each["snapshot-id"]))
        for each in metadata.get("snapshot-log", ())
    ]
    if isinstance(at, datetime):
        then = int(at.timestamp() * 1000)
        current = [snapshot for time_ms, snapshot in log if time_ms <= then]
        if not current:
            first = f"from {_text(log[0][0])} on" if log else "of no time"
            raise NoAnswer(f"{target}: nothing is known of {at.isoformat()}: it has states {first}")
        at = current[-1]
    if at not in kept:
        states = ", ".join(f"{snapshot} ({_text(time_ms)})" for time_ms, snapshot in log[-5:])
        raise NoAnswer(f"{target} has no snapshot {at}; the last ones: {states or 'none'}")
    return at


def _text(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds")


def since_when(path: Path, target: TargetName, source: TopicPartition, offset: int) -> Since | None:
    """The first version in the present one's history whose marks hold an offset of a lane. Raises
    NoAnswer."""
    metadata = _read(path, target)
    kept = {each["snapshot-id"]: each for each in metadata.get("snapshots", ())}
    at, first = metadata.get("current-snapshot-id"), None
    while (snapshot := kept.get(at)) is not None:
        text = snapshot.get("summary", {}).get(HWM)
        if text is not None:  # what others add holds what the version below it does
            if _mark(text, source) < offset:
                return first
            first = Since(str(at), int(snapshot["timestamp-ms"]), expired=False)
        at = snapshot.get("parent-snapshot-id")
    return None if first is None else first._replace(expired=at is not None)


def _mark(text: str, source: TopicPartition) -> int:
    try:
        return Marks.parse(text).of(source)
    except ValueError as error:
        raise NoAnswer(f"{HWM} is {text!r}: {error}") from error


def _read(path: Path, target: TargetName) -> dict[str, Any]:
    try:
        metadata: dict[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise NoAnswer(f"{target}: {path} can't be read: {error}") from error
    return metadata
