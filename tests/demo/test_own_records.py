"""The README's commands for a Kafka that is there already, as they stand, on records of one's own:
Debezium's defaults, a topic for each table."""

from __future__ import annotations

import json
import os
import re
import resource
import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from actors.runtime.java import CHECKOUT
from actors.runtime.programs import free_port
from demo.broker import DevBroker
from tests.demo.test_by_hand import PAGE, Shell, shell

__all__ = ["shell"]

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

BLOCK = re.compile(r"### With a Kafka.*?\n```\n(.*?)```", re.S)
MOST_COMMANDS, WITHIN_S = 5, 60.0
PARCELS, DEPOTS = "yard.parcels", "yard.depots"


def commands() -> list[str]:
    """The lines of the block."""
    found = BLOCK.search((CHECKOUT / "README.md").read_text())
    assert found is not None
    return found[1].splitlines()


def test_five_commands_are_enough() -> None:
    assert len(commands()) <= MOST_COMMANDS
    assert all(line.startswith("binlogd ") for line in commands())


def field(name: str, type_: str, semantic: str = "", *, optional: bool = True) -> dict[str, Any]:
    found: dict[str, Any] = {"type": type_, "optional": optional, "field": name}
    if semantic == "org.apache.kafka.connect.data.Decimal":
        found["parameters"] = {"scale": "2", "connect.decimal.precision": "9"}
    return found | ({"name": semantic, "version": 1} if semantic else {})


COLUMNS = {
    PARCELS: [
        field("parcel_no", "int64", optional=False),
        field("addressee", "string"),
        field("weight_kg", "bytes", "org.apache.kafka.connect.data.Decimal"),
        field("seen_at", "int64", "io.debezium.time.MicroTimestamp"),
    ],
    DEPOTS: [field("code", "string", optional=False), field("open", "boolean")],
}
"""As Kafka Connect's JSON converter describes them, which it does unless it is told not to."""


def record(table: str, op: str, at: int, before: Any, after: Any) -> tuple[str, str]:
    """Key and value as Debezium for PostgreSQL sends them without a setting of one's own."""
    columns, topic = COLUMNS[table], f"acme.{table}"
    key = {columns[0]["field"]: (after or before)[columns[0]["field"]]}
    schema, name = table.split(".")
    rows = [
        {"type": "struct", "fields": columns, "optional": True, "field": image}
        for image in ("before", "after")
    ]
    source = {
        "version": "3.2.0.Final", "connector": "postgresql", "name": "acme", "ts_ms": at,
        "snapshot": "false", "db": "goods", "schema": schema, "table": name, "txId": at,
        "lsn": 24_000_000 + at, "sequence": f'["{at}","{at}"]', "xmin": None,
    }  # fmt: skip
    fields = [*rows, field("op", "string", optional=False), field("ts_ms", "int64")]
    schemas = {"type": "struct", "fields": fields, "optional": False, "name": f"{topic}.Envelope"}
    of_key = {"type": "struct", "fields": columns[:1], "optional": False, "name": f"{topic}.Key"}
    payload = {"before": before, "after": after, "source": source, "op": op, "ts_ms": at}
    return (
        json.dumps({"schema": of_key, "payload": key}),
        json.dumps({"schema": schemas, "payload": payload}),
    )


def parcel(number: int, addressee: str, weight: str, seen_at: int | None) -> Mapping[str, Any]:
    """``weight``: Base64 of the unscaled number, as Connect has decimals."""
    return {
        "parcel_no": number, "addressee": addressee, "weight_kg": weight, "seen_at": seen_at,
    }  # fmt: skip


def send(bootstrap: str, prefix: str) -> None:
    """Three parcels and a depot; one parcel changes, one goes: Debezium adds a tombstone."""
    topics = [NewTopic(f"{prefix}.{table}", 1, 1) for table in COLUMNS]
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for made in admin.create_topics(topics).values():
        made.result()
    failed: list[Any] = []
    producer = Producer(
        {"bootstrap.servers": bootstrap, "on_delivery": lambda e, _: e and failed.append(e)}
    )
    first, other = parcel(7, "Noor", "AN4=", 1_790_000_000_000_000), parcel(8, "Wim", "ZA==", None)
    gone = parcel(9, "Ida", "AQ==", None)
    sent = [
        *(record(PARCELS, "c", at, None, row) for at, row in enumerate((first, other, gone))),
        record(PARCELS, "u", 10, other, {**other, "addressee": "Wim's aunt"}),
        record(PARCELS, "d", 11, gone, None),
    ]
    for key, value in sent:
        producer.produce(f"{prefix}.{PARCELS}", key=key, value=value)
    producer.produce(f"{prefix}.{PARCELS}", key=sent[-1][0], value=None)
    key, value = record(DEPOTS, "r", 12, None, {"code": "UTR", "open": True})
    producer.produce(f"{prefix}.{DEPOTS}", key=key, value=value)
    assert (producer.flush(60), failed) == (0, [])


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Somebody's Kafka."""
    with DevBroker(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker.bootstrap


def cpu_s() -> float:
    """Processor time of all commands so far, and of what they started and waited for."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


@pytest.mark.parametrize(("prefix", "lake"), [("acme", "./lake"), ("bolt", "yard.db")])
def test_own_records_are_read_back_within_a_minute(
    prefix: str, lake: str, bootstrap: str, shell: Shell
) -> None:
    """What a person puts into the commands is known: the broker, the topics, and a table's name,
    which the fourth command prints. On a busy machine a minute of its processors is the bound."""
    send(bootstrap, prefix)
    init, check, run, list_, query = commands()
    init = init.replace("kafka:9092", bootstrap).replace("shop", prefix).replace("./lake", lake)
    began, spent, free = time.monotonic(), cpu_s(), os.getloadavg()[0] < (os.cpu_count() or 1)
    seen = shell.run(init)
    assert f"{prefix}.{PARCELS}: debezium-json, 1 table in 6 records\n" in seen
    config = shell.folder / "config.toml"
    config.write_text(config.read_text().replace(PAGE, f"127.0.0.1:{free_port()}"))
    shell.run(check)
    shell.run(run)
    tables = re.findall(r"lake\.\S+", shell.run(list_))
    assert tables == ["lake.yard.depots", "lake.yard.parcels"]
    head, *rows, count = shell.run(query.replace("lake.shop.orders", tables[1])).splitlines()
    took_s, spent = time.monotonic() - began, cpu_s() - spent
    print(f"{lake}: {took_s:.1f} s from the first command to the rows, {spent:.1f} of processor")
    assert head.split() == ["parcel_no", "addressee", "weight_kg", "seen_at"]
    first, other = sorted(rows)
    assert first.split()[:3] == ["7", "Noor", "2.22"]
    assert re.search(r"2026-09-21[T ]14:13:20", first)
    assert other.split() == ["8", "Wim's", "aunt", "1.00", "<null>"]
    assert count == "2 rows"
    assert spent < WITHIN_S * (os.cpu_count() or 1)
    assert took_s < WITHIN_S or not free
