"""Writes protobuf's wire format by hand: fields by number, so that no .proto is trusted twice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence


def varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first; negative ones as 64 bits."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


Value = int | bool | str | bytes | None | Sequence[bytes]


def fields(values: Mapping[int, Value]) -> bytes:
    """A message of these fields: numbers, texts, bytes or messages, lists of messages.

    None is not written; what is given is, also where it is the default.
    """
    out = b""
    for number, value in values.items():
        if isinstance(value, bool | int):
            out += varint(number << 3) + varint(int(value))
        elif value is not None:
            several: Iterable[bytes] = (
                [value.encode()]
                if isinstance(value, str)
                else [value]
                if isinstance(value, bytes)
                else value
            )
            for each in several:
                out += varint(number << 3 | 2) + varint(len(each)) + each
    return out


# --- Canal: numbers from its EntryProtocol and CanalProtocol


def canal_column(
    name: str, value: str | None, mysql: str, *, key: bool = False, sql: int | None = None
) -> bytes:
    null = value is None
    return fields({2: sql, 3: name, 4: key or None, 6: null, 8: None if null else value, 10: mysql})


def canal_row(before: Sequence[bytes] = (), after: Sequence[bytes] = ()) -> bytes:
    return fields({1: before, 2: after})


CANAL_EVENTS = {"INSERT": 1, "UPDATE": 2, "DELETE": 3, "CREATE": 4, "ALTER": 5, "ERASE": 6,
                "QUERY": 7, "TRUNCATE": 8}  # fmt: skip


def canal_rows(
    event: str,
    rows: Sequence[bytes],
    table: str = "t",
    database: str = "s",
    gtid: str | None = None,
    time_ms: int | None = 1_700_000_000_000,
) -> bytes:
    number = CANAL_EVENTS[event]
    header = fields({6: time_ms, 7: 2, 8: database, 9: table, 11: number, 13: gtid})
    change = fields({1: 7, 2: CANAL_EVENTS[event], 10: False, 12: rows})
    return fields({1: header, 2: 2, 3: change})


def canal_ddl(
    event: str, sql: str, table: str = "t", database: str = "s", session: str | None = None
) -> bytes:
    """``session``: the database that a name without one is in, that of the table if None."""
    header = fields({6: 1_700_000_000_000, 8: database, 9: table, 11: CANAL_EVENTS[event]})
    change = fields(
        {2: CANAL_EVENTS[event], 10: True, 11: sql, 14: database if session is None else session}
    )
    return fields({1: header, 2: 2, 3: change})


def canal_mark(
    entry_type: int,
    number: str = "17",
    gtid: str | None = None,
    time_ms: int | None = 1_700_000_000_000,
) -> bytes:
    """TRANSACTIONBEGIN is 1, TRANSACTIONEND 3, HEARTBEAT 4, GTIDLOG 5."""
    header = fields({6: time_ms, 13: gtid})
    return fields({1: header, 2: entry_type, 3: fields({2: number})})


def canal_packet(*entries: bytes, compression: int | None = 1, kind: int = 7) -> bytes:
    return fields({1: 17, 2: 1, 3: kind, 4: compression, 5: fields({2: entries})})


# --- Tencent DTS: numbers from its subscribe.proto

NIL = b""
NA = fields({1: 14})


def dts_number(kind: int, text: str) -> bytes:
    return fields({1: kind, 3: text})


def dts_text(text: str, charset: str = "utf8mb4", codec: str = "utf-8") -> bytes:
    return fields({1: 13, 2: charset, 4: text.encode(codec)})


def dts_bytes(raw: bytes) -> bytes:
    return fields({1: 11, 4: raw})


def dts_column(name: str, original: str, *, key: bool = False) -> bytes:
    return fields({1: name, 2: original, 3: key or None})


def dts_row(old: Sequence[bytes] = (), new: Sequence[bytes] = ()) -> bytes:
    return fields({1: old, 2: new})


def dts_entry(
    kind: int,
    event: bytes,
    table: str = "t",
    database: str = "s",
    source: int = 1,
    gtid: str | None = None,
    time_s: int | None = 1_700_000_000,
) -> bytes:
    told: dict[int, Value] = {1: 1, 2: source, 3: kind or None, 4: time_s, 8: gtid}
    return fields({1: fields({**told, 9: database, 10: table}), 2: event})


def dts_rows(
    op: int,
    columns: Sequence[bytes],
    rows: Sequence[bytes],
    table: str = "t",
    source: int = 1,
    database: str = "s",
    gtid: str | None = None,
    time_s: int | None = 1_700_000_000,
) -> bytes:
    """``op``: 0 INSERT, 1 UPDATE, 2 DELETE."""
    event = fields({1: op or None, 2: columns, 3: rows})
    return dts_entry(2, fields({2: event}), table, database, source, gtid, time_s)


def dts_ddl(sql: str, table: str = "t", database: str = "s") -> bytes:
    return dts_entry(3, fields({4: fields({1: database, 2: sql})}), table, database)


def dts_begin(time_s: int | None = 1_700_000_000, *, bare: bool = False) -> bytes:
    """``bare``: without an event."""
    event = b"" if bare else fields({1: fields({1: "tx"})})
    return dts_entry(0, event, "", "", time_s=time_s)


def dts_commit(
    number: str = "tx", gtid: str | None = None, time_s: int | None = 1_700_000_000
) -> bytes:
    return dts_entry(1, fields({3: fields({1: number})}), "", "", gtid=gtid, time_s=time_s)


def dts_heartbeat() -> bytes:
    return dts_entry(5, fields({6: fields({1: 7})}), "", "")


def dts_checkpoint() -> bytes:
    return dts_entry(6, fields({7: fields({1: "gtid:1-9", 3: "bin.1", 4: 4})}), "", "")


def dts_envelope(data: bytes, total: int = 1, index: int = 0, version: int = 1) -> bytes:
    return fields({1: version, 2: total, 3: index or None, 4: data})


def dts_message(*entries: bytes) -> bytes:
    return dts_envelope(fields({1: entries}))


def dts_parts(size: int, *entries: bytes) -> list[bytes]:
    """The same in parts of so many bytes."""
    data = fields({1: entries})
    cut = [data[start : start + size] for start in range(0, len(data), size)]
    return [dts_envelope(each, len(cut), index) for index, each in enumerate(cut)]
