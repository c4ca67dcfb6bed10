"""What real readers write of the samples: Debezium's and Canal's messages, recorded or now.

``python -m tests.databases.base.streams`` records them again, beside the servers that it starts.
"""

from __future__ import annotations

import gzip
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from confluent_kafka import Consumer, TopicPartition

from changes.formats import FORMATS
from changes.formats.engine.format import pack
from changes.model.model import ColumnTypes, FormatOptions, Mode, TableName
from demo.broker import DevBroker
from tests.databases.base.samples import (
    MYSQL,
    ONLY_MARIADB,
    ONLY_MYSQL,
    POSTGRESQL,
    POSTGRESQL_TYPES,
    Sample,
    create,
    inserts,
)
from tests.databases.base.servers import SERVERS, Server
from tests.live.canal import Canal
from tests.live.connect import Connect
from tests.live.maxwell import Maxwell
from tests.live.program import HOST, LiveError
from tests.live.topic import Topic

RECORDED = Path(__file__).parent / "recorded"
_WITHIN_S = 120.0

SAMPLES: dict[str, tuple[Sample, ...]] = {
    "mariadb": (*MYSQL, *ONLY_MARIADB),
    "mysql": (*MYSQL, *ONLY_MYSQL),
    "postgresql": POSTGRESQL,
}
WAYS = (
    ("mariadb", "debezium-json"), ("postgresql", "debezium-json"), ("mysql", "debezium-json"),
    ("mariadb", "canal-json"), ("mariadb", "maxwell-json"),
)  # fmt: skip
"""Databases, and the formats in which their samples are read. Canal 1.1.7 does not read MySQL 9: it
asks with statements that are gone."""

_OTHER_CHARSETS = tuple(sample.sql for sample in MYSQL if "CHARACTER SET" in sample.sql)
NOT_READ = {
    # Its server's log does not name character sets, and Canal takes each for UTF-8. Of 65 digits
    # it prints 62.
    ("mariadb", "canal-json"): ("UUID", "DECIMAL(65,30)", *_OTHER_CHARSETS),
    # It ends itself at MariaDB's JSON, shows a time below zero or beyond a day otherwise, and loses
    # the digits of a second in tables that were there before it.
    ("mariadb", "maxwell-json"): (
        "UUID",
        "JSON",
        "TIME",
        "TIME(3)",
        "TIME(6)",
        "DATETIME(3)",
        "DATETIME(6)",
        "TIMESTAMP(6) NULL",
    ),
}
"""Types that a reader does not read rightly."""

TABLE = {
    "mariadb": TableName("s1_a", "samples"),
    "mysql": TableName("s1_a", "samples"),
    "postgresql": TableName("s1_a", "samples"),
}


def samples(server: str, format_: str) -> tuple[Sample, ...]:
    """The columns that a reader reads."""
    left_out = NOT_READ.get((server, format_), ())
    return tuple(sample for sample in SAMPLES[server] if sample.sql not in left_out)


_DECLARED = {
    "FLOAT": "float", "DOUBLE": "double", "DECIMAL(38,10)": "decimal(38,10)",
    "BINARY(4)": "binary", "VARBINARY(16)": "binary", "BLOB": "binary",
    "DATETIME": "timestamp", "TIMESTAMP NULL": "timestamptz", "BIT(1)": "boolean",
}  # fmt: skip


def declared(server: str, format_: str) -> ColumnTypes:
    """Types that a configuration would declare for columns whose messages have none."""
    chosen = enumerate(samples(server, format_))
    return tuple((f"c{n}", _DECLARED[one.sql]) for n, one in chosen if one.sql in _DECLARED)


def fill(server: Server, format_: str, *, rows: bool = True, table: bool = True) -> None:
    """Make the table of the samples, and its rows. Raises LiveError."""
    chosen, name = samples(server.kind, format_), TABLE[server.kind]
    where = f"{name.database}.{name.table}"
    if table:
        first = [f"CREATE SCHEMA {name.database}"]
        server.run([*first, *(POSTGRESQL_TYPES if server.kind == "postgresql" else ())])
        server.run([create(chosen, where)])
    if rows:
        server.run(["SET sql_mode = ''"] * (server.kind != "postgresql") + inserts(chosen, where))


@dataclass(frozen=True, slots=True)
class Record:
    """A message."""

    key: bytes | None
    value: bytes | None


def read_now(server: Server, format_: str, folder: Path) -> list[Record]:
    """Run the reader beside a server that has the samples' table, add the rows, take messages."""
    with DevBroker(folder / "broker") as broker:
        kinds = {"canal-json": Canal, "maxwell-json": Maxwell}
        reader = kinds.get(format_, Connect)(folder / "reader", broker.bootstrap)
        reader.start()
        topic = Topic(broker.bootstrap, "samples")
        try:
            reader.add("samples", "samples", 1, _Source(server), folder)
            _await_reader(server, reader)
            fill(server, format_, table=False)
            server.run([
                "CREATE TABLE s1_a.marker (id INT PRIMARY KEY)",
                "INSERT INTO s1_a.marker VALUES (7)",
            ])  # fmt: skip
            deadline, found = time.monotonic() + _WITHIN_S, None
            while found is None:
                found = topic.find("marker", 7)
                if failure := reader.failure("samples"):
                    raise LiveError(failure)
                if time.monotonic() > deadline:
                    raise LiveError("the marker does not come")
            return _messages(broker.bootstrap, found[0])
        finally:
            topic.close()
            reader.kill()


class _Source:
    """What a reader asks of ``tests.live.sources.Source``."""

    prefix = "s"

    def __init__(self, server: Server) -> None:
        self._server = server
        self.port = server.port

    def connector(self, seed: int, folder: Path) -> dict[str, str]:
        common = {"database.hostname": HOST, "database.port": str(self._server.port)}
        if self._server.kind == "postgresql":
            return common | {
                "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
                "database.user": "postgres", "database.dbname": "postgres",
                "plugin.name": "pgoutput", "slot.name": "samples",
                "publication.name": "samples", "publication.autocreate.mode": "all_tables",
            }  # fmt: skip
        history = "schema.history.internal"
        kind = "mariadb.MariaDbConnector"
        if self._server.kind == "mysql":
            kind = "mysql.MySqlConnector"
        return common | {
            "connector.class": f"io.debezium.connector.{kind}",
            "database.user": "live", "database.password": "live", "database.server.id": "4711",
            "database.include.list": "s1_a", "include.schema.changes": "true",
            history: "io.debezium.storage.file.history.FileSchemaHistory",
            f"{history}.file.filename": str(folder / "history"),
        }  # fmt: skip


def _await_reader(server: Server, reader: Connect | Canal | Maxwell) -> None:
    deadline, pause = time.monotonic() + _WITHIN_S, threading.Event()
    while not server.readers():
        if failure := reader.failure("samples"):
            raise LiveError(failure)
        if time.monotonic() > deadline:
            raise LiveError("no reader follows the log")
        pause.wait(0.2)


def _messages(bootstrap: str, end: int) -> list[Record]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "take"})
    try:
        consumer.assign([TopicPartition("samples", 0, 0)])
        found, offset = [], 0
        while offset < end:
            message = consumer.poll(10)
            if message is None or message.error():
                raise LiveError("the topic can't be read")
            offset = message.offset() + 1
            found.append(Record(message.key(), message.value()))
        return found
    finally:
        consumer.close()


def decoded(
    server: str, format_: str, records: Sequence[Record], types: ColumnTypes = ()
) -> pa.Table:
    """The rows of the samples' table as the project's decoder has them."""
    made = FORMATS[format_](FormatOptions())
    values = [pack(record.key, record.value) if made.keyed else record.value for record in records]
    own = [
        value
        for value, head in zip(values, made.heads(values), strict=True)
        if head.table == TABLE[server] and head.kind.value == "rows"
    ]
    changes = made.table_decoder(Mode.UPSERT, None, types).decode(0, range(len(own)), own)
    assert changes is not None
    return changes.table


def record(server: str, format_: str) -> None:
    """Record what a reader writes."""
    with tempfile.TemporaryDirectory(prefix="binlogd-streams-") as name:
        folder = Path(name)
        folder.chmod(0o711)
        with SERVERS[server](folder / "server") as started:
            fill(started, format_, rows=False)
            found = read_now(started, format_, folder)
    RECORDED.mkdir(exist_ok=True)
    save(RECORDED / f"{server}-{format_}.gz", found)
    print(f"{server} {format_}: {len(found)} messages")


def save(path: Path, records: Sequence[Record]) -> None:
    """Write records: of each the lengths of key and value, then both; -1 is none."""
    with gzip.GzipFile(path, "wb", mtime=0) as file:
        for one in records:
            for part in (one.key, one.value):
                file.write((-1 if part is None else len(part)).to_bytes(4, "big", signed=True))
                file.write(part or b"")


def load(path: Path) -> list[Record]:
    """Read them back."""
    data, at, parts = gzip.decompress(path.read_bytes()), 0, []
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "big", signed=True)
        at += 4
        parts.append(None if size < 0 else data[at : at + size])
        at += max(size, 0)
    return [Record(key, value) for key, value in zip(parts[::2], parts[1::2], strict=True)]


if __name__ == "__main__":
    for server_, format_ in WAYS:
        if not sys.argv[1:] or f"{server_}-{format_}" in sys.argv[1:]:
            record(server_, format_)
