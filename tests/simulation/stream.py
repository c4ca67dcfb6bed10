"""A random change stream and, beside it, what must come of it."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import msgspec

from offsets.position import TopicPartition

SOURCES = (TopicPartition("binlog", 0), TopicPartition("binlog", 1))


@dataclass
class Stream:
    """A change stream and, beside it, the tables and the changelog that it must lead to."""

    log: dict[TopicPartition, list[tuple[int, bytes]]]
    end: dict[TopicPartition, int]
    tables: dict[str, dict[tuple[Any, ...], dict[str, Any]]] = field(default_factory=dict)
    changelog: dict[TopicPartition, list[tuple[str, int, int, int]]] = field(default_factory=dict)


def random_stream(rng: random.Random, messages: int, tables: int = 4) -> Stream:
    """Inserts, updates, deletes, key changes over two partitions, gaps between the offsets.

    A table's changes are all in one partition; the changelog takes in both.
    """
    stream = Stream({s: [] for s in SOURCES}, {}, {}, {s: [] for s in SOURCES})
    offsets = dict.fromkeys(SOURCES, 0)
    for _ in range(messages):
        number = rng.randrange(tables)
        source = SOURCES[number % 2]
        offsets[source] += rng.choice((0, 0, 0, 1, 3))
        rows = stream.tables.setdefault(f"lake.s.t{number}", {})
        kind = rng.choice(("INSERT", "INSERT", "UPDATE", "UPDATE", "DELETE"))
        data, old = _random_rows(rng, kind, rows)
        if data:
            offset = offsets[source]
            stream.log[source].append((offset, _message(f"t{number}", kind, data, old)))
            letter = {"INSERT": "I", "UPDATE": "U", "DELETE": "D"}[kind]
            places = range(len(data))
            stream.changelog[source] += [(letter, source.partition, offset, i) for i in places]
            offsets[source] += 1
    stream.end = {source: offset + rng.randrange(3) for source, offset in offsets.items()}
    return stream


def _random_rows(
    rng: random.Random, kind: str, rows: dict[tuple[Any, ...], dict[str, Any]]
) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    data: list[dict[str, str]] = []
    old: list[dict[str, str]] = []
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        value = str(rng.randrange(1000))
        if kind == "INSERT":
            key = rng.randrange(10_000)
            if (key,) in rows:
                continue
            rows[(key,)] = {"id": key, "v": value}
            data.append({"id": str(key), "v": value})
        elif rows:
            (key,) = rng.choice(sorted(rows))
            before = rows.pop((key,))
            if kind == "DELETE":
                data.append({"id": str(key), "v": before["v"]})
                continue
            fresh = rng.randrange(10_000) if rng.random() < 0.2 else key
            new = key if (fresh,) in rows else fresh
            rows[(new,)] = {"id": new, "v": value}
            data.append({"id": str(new), "v": value})
            old.append({"v": before["v"], **({"id": str(key)} if new != key else {})})
    return data, old


def _message(table: str, kind: str, data: list[Any], old: list[Any]) -> bytes:
    return msgspec.json.encode(
        {
            "id": 1,
            "database": "s",
            "table": table,
            "pkNames": ["id"],
            "isDdl": False,
            "type": kind,
            "es": 1,
            "ts": 2,
            "sql": "",
            "sqlType": {"id": 4, "v": 12},
            "mysqlType": {"id": "int(11)", "v": "varchar(20)"},
            "data": data,
            "old": old if kind == "UPDATE" else None,
        }
    )
