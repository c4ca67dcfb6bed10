"""Records what Debezium writes in each form of a wire: ``tests/changes/formats/recordings``.

``python -m tests.live.record`` needs what ``make live`` needs, and a registry (`make setup-lake`).
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

from changes.formats.wire.frames import frame_of
from changes.formats.wire.schemas import Schema, SchemaId
from changes.model.registry import Registry
from demo.broker import DevBroker
from demo.servers.apicurio import Apicurio
from demo.servers.server import ask, ask_json
from tests.changes.formats.recordings.recorded import Record, Recording, save
from tests.live.connect import Connect
from tests.live.mariadb import MariaDb
from tests.live.postgres import Postgres
from tests.live.program import HOST, LiveError
from tests.live.record_statements import MARIADB, MARIADB_TABLES, POSTGRES, POSTGRES_TABLES
from tests.live.relay import Rewriter
from tests.live.wires import FORMS, JSON, Form, of_connector

_WITHIN_S = 120.0
_RELAYED = FORMS["jsonschema"]
_CONNECTOR: Mapping[str, str] = {
    "skipped.operations": "none", "tasks.max": "1", "poll.interval.ms": "50",
    "topic.creation.default.partitions": "1", "topic.creation.default.replication.factor": "1",
    "database.hostname": HOST,
}  # fmt: skip


def main() -> None:
    """Record all."""
    with tempfile.TemporaryDirectory(prefix="binlogd-record-") as name, ExitStack() as stack:
        folder = Path(name)
        folder.chmod(0o711)
        postgres, mariadb = Postgres(folder / "postgres"), MariaDb(folder / "mariadb")
        for server in (postgres, mariadb):
            server.start()
            stack.callback(server.program.kill)
        _run(lambda one: postgres.run("postgres", [one]), POSTGRES_TABLES)
        _run(lambda one: mariadb.run([one]), MARIADB_TABLES)
        registry = stack.enter_context(Apicurio(folder / "registry"))
        broker = stack.enter_context(DevBroker(folder / "broker"))
        connect = Connect(folder / "connect", broker.bootstrap)
        connect.add_converters()
        connect.start()
        stack.callback(connect.kill)
        forms = [form for form in FORMS.values() if not form.is_relayed]
        for form in forms:
            wire = of_connector(form, registry.confluent_url, registry.apicurio_url)
            left_out = {"table.exclude.list": "s.null_elements"} if "proto" in form.name else {}
            config = {**_CONNECTOR, **_of_postgres(form.name, postgres.port), **wire, **left_out}
            connect.connect(config["topic.prefix"], config)
            config = {**_CONNECTOR, **_of_mariadb(form.name, mariadb.port, folder), **wire}
            connect.connect(config["topic.prefix"], config)
        _until(lambda: _readers(postgres, mariadb) == 2 * len(forms))
        _run(lambda one: postgres.run("postgres", [one]), POSTGRES)
        _run(lambda one: mariadb.run([one]), MARIADB)
        for form in forms:
            for source in ("postgres", "mariadb"):
                found = _recording(broker.bootstrap, f"{source}-{form.name}", form, registry)
                save(source, form.name, found)
                if form is JSON:
                    save(source, _RELAYED.name, _relayed(source, found, registry))


def _run(run: Callable[[str], str], statements: Iterable[str]) -> None:
    for statement in statements:
        if error := run(statement):
            raise LiveError(f"{statement}: {error}")


def _readers(postgres: Postgres, mariadb: MariaDb) -> int:
    slots = postgres.ask("SELECT slot_name FROM pg_replication_slots WHERE active;").rows
    query = "SELECT id FROM information_schema.processlist WHERE command LIKE 'Binlog%'"
    return len(slots) + len(mariadb.ask(query).rows)


def _until(is_so: Callable[[], bool]) -> None:
    deadline, pause = time.monotonic() + _WITHIN_S, threading.Event()
    while not is_so():
        if time.monotonic() > deadline:
            raise LiveError("not all connectors follow a log")
        pause.wait(0.2)


def _of_postgres(name: str, port: int) -> Mapping[str, str]:
    return {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "topic.prefix": f"postgres-{name}", "database.port": str(port),
        "database.user": "postgres", "database.dbname": "postgres", "plugin.name": "pgoutput",
        "slot.name": f"record_{name.replace('-', '_')}", "publication.name": "record",
        "publication.autocreate.mode": "all_tables",
    }  # fmt: skip


def _of_mariadb(name: str, port: int, folder: Path) -> Mapping[str, str]:
    history = "schema.history.internal"
    return {
        "connector.class": "io.debezium.connector.mariadb.MariaDbConnector",
        "topic.prefix": f"mariadb-{name}", "database.port": str(port),
        "database.user": "live", "database.password": "live",
        "database.server.id": str(1000 + list(FORMS).index(name)),
        "database.include.list": "s", "bigint.unsigned.handling.mode": "precise",
        "column.propagate.source.type": ".*", "include.schema.changes": "true",
        history: "io.debezium.storage.file.history.FileSchemaHistory",
        f"{history}.file.filename": str(folder / f"history-{name}"),
        f"{history}.store.only.captured.databases.ddl": "true",
    }  # fmt: skip


def _recording(bootstrap: str, prefix: str, form: Form, registry: Apicurio) -> Recording:
    records = sorted(_records(bootstrap, prefix), key=lambda record: record.table)
    if form is JSON:
        return Recording({}, records)
    kind = "apicurio" if form.registry == "apicurio" else "confluent"
    known = Registry(kind, Path("unused"))
    schemas: dict[SchemaId, Schema] = {}
    for one in records:
        for data, is_key in ((one.key, True), (one.value, False)):
            frame = None if data is None else frame_of(data, one.headers, known, is_key=is_key)
            if frame is not None and frame.schema not in schemas:
                schemas[frame.schema] = _schema(frame.schema, registry)
    return Recording(schemas, records)


def _records(bootstrap: str, prefix: str) -> Iterator[Record]:
    """All there are, until the last row has come."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "record"})
    deadline, last = time.monotonic() + _WITHIN_S, f"{prefix}.s.last"
    while last not in (topics := consumer.list_topics(timeout=20).topics):
        if time.monotonic() > deadline:
            raise LiveError(f"no topic {last}: has its connector ended?")
    mine = [name for name in topics if name == prefix or name.startswith(f"{prefix}.")]
    ends = {name: consumer.get_watermark_offsets(TopicPartition(name, 0))[1] for name in mine}
    consumer.assign([TopicPartition(name, 0, 0) for name in mine])
    for _ in range(sum(ends.values())):
        message = consumer.poll(20)
        if message is None or message.error() is not None:
            raise LiveError(f"{prefix}: not all records came")
        table = str(message.topic()).removeprefix(prefix).removeprefix(".")
        headers = message.headers() or []
        assert isinstance(headers, list)
        yield Record(table, message.key(), message.value(), tuple(headers))
    consumer.close()


def _schema(identity: SchemaId, registry: Apicurio) -> Schema:
    if identity.kind == "id":
        found = ask_json(f"{registry.confluent_url}/schemas/ids/{identity.value}")
        return Schema(found.get("schemaType", "AVRO"), found["schema"])
    numbers = "contentIds" if identity.kind == "content" else "globalIds"
    text = ask(f"{registry.apicurio_url}/ids/{numbers}/{identity.value}")
    if text is None:
        raise LiveError(f"the registry does not know {identity}")
    return Schema("AVRO", text.decode())


def _relayed(source: str, found: Recording, registry: Apicurio) -> Recording:
    rewriter, known = Rewriter(registry.confluent_url), Registry("confluent", Path("unused"))
    records, schemas = [], {}
    for one in found.records:
        subject = f"{source}-{_RELAYED.name}.{one.table}"
        key = rewriter.framed(one.key, f"{subject}-key")
        value = rewriter.framed(one.value, f"{subject}-value")
        records.append(Record(one.table, key, value, one.headers))
        for data, is_key in ((key, True), (value, False)):
            frame = None if data is None else frame_of(data, (), known, is_key=is_key)
            if frame is not None and frame.schema not in schemas:
                schemas[frame.schema] = _schema(frame.schema, registry)
    return Recording(schemas, records)


if __name__ == "__main__":
    main()
