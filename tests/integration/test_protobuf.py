"""Canal's packets and Tencent DTS's envelopes from a real broker to tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from confluent_kafka import Producer

from offsets.position import TopicPartition
from settings.exit import Exit
from tests.changes.formats import protobuf_records as wire
from tests.integration.rig import Rig
from tests.integration.test_process import ROUTES, Follower, daemon, ended

pytestmark = pytest.mark.long

CANAL_TYPES = {"id": "int(11)", "name": "varchar(20)", "note": "varchar(20)"}
COLUMNS = [
    wire.dts_column("id", "int(11)", key=True),
    wire.dts_column("name", "varchar(20)"),
    wire.dts_column("qty", "bigint(20)"),
]


# --- Canal


def canal_row(**values: object) -> list[bytes]:
    """A row's columns, as Canal writes them."""
    return [
        wire.canal_column(
            name, None if value is None else str(value), CANAL_TYPES[name], key=name == "id"
        )
        for name, value in values.items()
    ]


def canal_rows(rig: Rig, event: str, *rows: bytes, table: str = "orders") -> bytes:
    return wire.canal_rows(event, rows, table, rig.db)


def test_a_stream_of_canal_ends_as_the_source_has_it(rig: Rig) -> None:
    """Transactions over two tables, statements among the rows, a moved key, a minimal image."""

    def new(**values: object) -> bytes:
        return wire.canal_row((), canal_row(**values))

    config = rig.write_config(p=rig.pipeline(format="canal-protobuf"))
    create = f"CREATE TABLE {rig.db}.orders (id int primary key, name varchar(20))"
    rig.produce(
        wire.canal_packet(wire.canal_ddl("CREATE", create, "orders", rig.db)),
        wire.canal_packet(
            wire.canal_mark(1),
            canal_rows(rig, "INSERT", *(new(id=key, name="a") for key in (1, 2, 3))),
            canal_rows(rig, "INSERT", new(id=7, name=None), table="items"),
            canal_rows(rig, "INSERT", new(id=4, name="")),
            wire.canal_mark(3),
        ),
        wire.fields({3: 11}),
    )
    assert rig.run(config) is Exit.OK
    alter = "ALTER TABLE orders ADD note varchar(20) DEFAULT 'n'; ALTER TABLE items DROP name"
    minimal = wire.canal_row(canal_row(id=2), canal_row(name="bb"))
    moved = wire.canal_row(canal_row(id=1, name="a"), canal_row(id=10, name="a"))
    rig.produce(
        wire.canal_packet(canal_rows(rig, "UPDATE", minimal, moved)),
        wire.canal_packet(wire.canal_ddl("ALTER", alter, "orders", rig.db)),
        wire.canal_packet(
            canal_rows(rig, "DELETE", wire.canal_row(canal_row(id=3, name="a"))),
            canal_rows(rig, "INSERT", new(id=5, name="e", note=None)),
            canal_rows(rig, "INSERT", new(id=8), table="items"),
        ),
        wire.canal_packet(wire.canal_mark(1), wire.canal_mark(3)),
    )
    assert rig.run(config) is Exit.OK
    assert rig.rows("orders") == [
        (2, "bb", "n"), (4, "", "n"), (5, "e", None), (10, "a", "n"),
    ]  # fmt: skip
    assert [row[0] for row in rig.rows("items")] == [7, 8]
    assert frontier(rig) == 7


def canal_new(*keys: int, name: str = "n", **more: object) -> list[bytes]:
    return [wire.canal_row((), canal_row(id=key, name=name, **more)) for key in keys]


@pytest.mark.timeout(400)
def test_statements_beside_rows_of_their_table_over_two_kills(rig: Rig) -> None:
    """One packet holds rows, ALTER, rows, TRUNCATE, rows: applied in order, each row once, also in
    the changelog; nothing of it counts as done before its end."""
    config = rig.write_config(
        p=rig.pipeline(format="canal-protobuf", target=None, route=ROUTES, include=[f"{rig.db}.*"])
    )
    alter = "ALTER TABLE orders ADD note varchar(20) DEFAULT 'n'"
    rig.produce(
        wire.canal_packet(canal_rows(rig, "INSERT", *canal_new(1))),
        wire.canal_packet(
            canal_rows(rig, "INSERT", *canal_new(2, 3)),
            wire.canal_ddl("ALTER", alter, "orders", rig.db),
            canal_rows(rig, "INSERT", *canal_new(1), table="items"),
            canal_rows(rig, "INSERT", *canal_new(4, note="four")),
            wire.canal_ddl("TRUNCATE", "TRUNCATE TABLE orders", "orders", rig.db),
            canal_rows(rig, "INSERT", *canal_new(5, 6, note="late")),
            wire.canal_ddl("ALTER", "ALTER TABLE orders DROP name", "orders", rig.db),
            canal_rows(rig, "DELETE", wire.canal_row(canal_row(id=6, note="late"))),
        ),
        wire.canal_packet(canal_rows(rig, "INSERT", wire.canal_row((), canal_row(id=7)))),
    )
    for writes in (4, 3):
        killed_after(rig, writes)
    assert rig.run(config) is Exit.OK
    assert [(row[0], row[2]) for row in rig.rows("orders")] == [(5, "late"), (7, None)]
    assert [row[0] for row in rig.rows("items")] == [1]
    told = rig.rows("orders_log", "_offset, _index")
    assert [(row[0], row[2], row[3], row[4]) for row in told] == [
        ("I", 0, 0, 1), ("I", 1, 0, 2), ("I", 1, 1, 3), ("I", 1, 2, 4), ("I", 1, 3, 5),
        ("I", 1, 4, 6), ("D", 1, 5, 6), ("I", 2, 0, 7),
    ]  # fmt: skip
    assert frontier(rig) == 3


@pytest.mark.timeout(300)
def test_a_column_that_comes_again_amid_a_packet(rig: Rig) -> None:
    """Rows that name it can't tell that it is another one: the kept values make room for it."""
    config = rig.write_config(p=rig.pipeline(format="canal-protobuf"))
    drop, add = (f"ALTER TABLE orders {what}" for what in ("DROP note", "ADD note varchar(20)"))
    rig.produce(
        wire.canal_packet(canal_rows(rig, "INSERT", *canal_new(1, note="was"))),
        wire.canal_packet(wire.canal_ddl("ALTER", drop, "orders", rig.db)),
        wire.canal_packet(
            canal_rows(rig, "INSERT", *canal_new(2)),
            wire.canal_ddl("ALTER", add, "orders", rig.db),
            canal_rows(rig, "INSERT", *canal_new(3, note="is")),
        ),
    )
    assert rig.run(config) is Exit.OK
    found = rig.spark.table(f"lake.`{rig.db}`.orders").orderBy("id")
    rows = [tuple(row) for row in found.select("id", "note", "note__dropped_2_2").collect()]
    assert rows == [(1, None, "was"), (2, None, None), (3, "is", None)]
    assert frontier(rig) == 3


@pytest.mark.timeout(300)
def test_an_online_schema_change_ends_amid_a_packet(rig: Rig) -> None:
    """The rows before it are those of the table that leaves the name, the rows behind it of the
    table that takes it."""
    config = rig.write_config(p=rig.pipeline(format="canal-protobuf"))
    swap = "RENAME TABLE orders TO orders_was, orders_next TO orders"
    rig.produce(
        wire.canal_packet(canal_rows(rig, "INSERT", *canal_new(1))),
        wire.canal_packet(
            canal_rows(rig, "INSERT", *canal_new(2)),
            canal_rows(rig, "INSERT", *canal_new(1, 2, name="next"), table="orders_next"),
            wire.canal_ddl("ALTER", swap, "orders", rig.db),
            canal_rows(rig, "INSERT", *canal_new(3, name="late")),
        ),
    )
    assert rig.run(config) is Exit.OK
    assert rig.rows("orders") == [(1, "next"), (2, "next"), (3, "late")]
    assert rig.rows("orders_was") == [(1, "n"), (2, "n")]
    assert frontier(rig) == 2


def test_a_compressed_packet_stops_the_pipeline_by_its_name(rig: Rig) -> None:
    """One line with the place; what came before is applied, nothing behind it."""
    new = [canal_rows(rig, "INSERT", wire.canal_row((), canal_row(id=key))) for key in (1, 2, 3)]
    rig.produce(
        wire.canal_packet(new[0]),
        wire.canal_packet(new[1], compression=3),
        wire.canal_packet(new[2]),
    )
    assert rig.run(rig.write_config(p=rig.pipeline(format="canal-protobuf"))) is (
        Exit.PIPELINE_FAILED
    )
    assert rig.stderr.splitlines() == [
        f"binlogd: p: {rig.topic}:0 offset 1: a Canal packet with compression GZIP; "
        "only NONE can be read"
    ]
    assert (rig.rows("orders"), frontier(rig)) == ([(1,)], 1)


# --- Tencent DTS


class Shards:
    """Writes what TDSQL's shards send: a running number for each, and its name, in headers."""

    def __init__(self, rig: Rig) -> None:
        self._rig = rig
        self.last = {"a": 0, "b": 0}
        self.sent = 0

    def send(self, shard: str, *values: bytes, skip: int = 0, again: bool = False) -> None:
        producer = Producer({"bootstrap.servers": self._rig.broker.bootstrap})
        for value in values:
            self.last[shard] += skip + (not again)
            headers = [("ShardId", shard.encode()), ("ps", str(self.last[shard]).encode())]
            producer.produce(self._rig.topic, value, b"key", 0, headers=headers)
            self.sent += 1
        assert producer.flush(30) == 0


def dts_row(key: int, name: str, qty: int | None = 1) -> list[bytes]:
    number = wire.NIL if qty is None else wire.dts_number(4, str(qty))
    return [wire.dts_number(3, str(key)), wire.dts_text(name), number]


def dts_insert(rig: Rig, table: str, *rows: Sequence[bytes]) -> bytes:
    made = [wire.dts_row((), row) for row in rows]
    return wire.dts_rows(0, COLUMNS, made, table, database=rig.db)


def dts_update(rig: Rig, table: str, old: Sequence[bytes], new: Sequence[bytes]) -> bytes:
    return wire.dts_rows(1, COLUMNS, [wire.dts_row(old, new)], table, database=rig.db)


def parts_of(count: int, entry: bytes) -> list[bytes]:
    """A message in so many parts."""
    made = wire.dts_parts(len(wire.fields({1: [entry]})) // count + 1, entry)
    assert len(made) == count
    return made


def frontier(rig: Rig) -> int:
    return rig.snapshot().partitions[TopicPartition(rig.topic, 0)].frontier


def dts_config(rig: Rig) -> Path:
    return rig.write_config(p=rig.pipeline(format="tencent-dts", target=None, route=ROUTES))


def killed_after(rig: Rig, writes: int) -> None:
    """Run the daemon as a process until it has written so often, then kill it."""
    rig.log_file.unlink(missing_ok=True)
    follower = Follower(rig.log_file)
    try:
        config = str(rig.folder / "config.toml")
        process = daemon("run", "--config", config, start_new_session=True)
        follower.wait_for("written", times=writes)
        process.kill()
        ended(process)
    finally:
        follower.close()


@pytest.mark.timeout(400)
def test_parts_of_two_shards_over_two_kills(rig: Rig) -> None:
    """The position is held where the open message began; each change comes into the log once."""
    config, shards = dts_config(rig), Shards(rig)
    one = parts_of(3, dts_insert(rig, "t", dts_row(1, "long " * 40), dts_row(2, "b")))
    minimal = [wire.dts_number(3, "1"), wire.NA, wire.NA], [wire.NA, wire.NA, wire.NIL]
    two = parts_of(2, dts_update(rig, "t", *minimal))
    shards.send("a", wire.dts_message(dts_insert(rig, "u", dts_row(5, "e"))))
    shards.send("b", one[0])
    killed_after(rig, writes=2)
    assert rig.run(config) is Exit.OK
    assert (frontier(rig), rig.spark.catalog.tableExists(f"lake.{rig.db}.t")) == (1, False)
    shards.send("b", one[1])
    shards.send("a", wire.dts_message(dts_insert(rig, "u", dts_row(6, "f"))))
    shards.send("b", one[2], two[0])
    shards.send("a", wire.dts_message(dts_insert(rig, "u", dts_row(7, "g"))))
    killed_after(rig, writes=4)
    assert rig.run(config) is Exit.OK
    assert frontier(rig) == 5
    shards.send("b", two[0], again=True)
    shards.send("b", two[1])
    shards.send("a", wire.dts_message(wire.dts_heartbeat()), wire.dts_message(wire.dts_commit()))
    shards.send("b", wire.dts_message(wire.dts_checkpoint()))
    assert rig.run(config) is Exit.OK
    assert rig.rows("t") == [(1, "long " * 40, None), (2, "b", 1)]
    assert [row[0] for row in rig.rows("u")] == [5, 6, 7]
    assert frontier(rig) == shards.sent
    places = [row[2:4] for row in rig.rows("t_log", "_offset, _index")]
    assert places == [(4, 0), (4, 1), (8, 0)]
    assert [event["messages"] for event in rig.events("sent_again")] == [1]


@pytest.mark.timeout(300)
def test_what_is_sent_again_is_dropped_and_statements_move_on(rig: Rig) -> None:
    """A producer that went back repeats messages with their numbers, also over a restart."""
    config, shards = dts_config(rig), Shards(rig)
    first = wire.dts_message(wire.dts_begin(), dts_insert(rig, "t", dts_row(1, "a")))
    shards.send("a", first, skip=4)
    shards.send("a", first, again=True)
    assert rig.run(config) is Exit.OK
    shards.send("a", first, again=True)
    add = "ALTER TABLE t ADD note varchar(9)"
    for shard in ("a", "b"):
        shards.send(shard, wire.dts_message(wire.dts_ddl(add, "t", rig.db)))
    shards.send("b", wire.dts_message(dts_insert(rig, "t", dts_row(2, "b", None))))
    assert rig.run(config) is Exit.OK
    assert rig.rows("t") == [(1, "a", 1, None), (2, "b", None, None)]
    assert [row[2] for row in rig.rows("t_log", "_offset")] == [0, 5]
    assert frontier(rig) == shards.sent
    assert [event["messages"] for event in rig.events("sent_again")] == [1, 1]


@pytest.mark.timeout(300)
def test_a_statement_of_mysql_beside_rows_of_its_table(rig: Rig) -> None:
    """A server's own, not a shard's, comes in parts here: the rows before it go, those behind it
    stay, and both are told."""
    entries = (
        dts_insert(rig, "t", dts_row(1, "long " * 40)),
        wire.dts_ddl("TRUNCATE TABLE t", "t", rig.db),
        dts_insert(rig, "t", dts_row(2, "b"), dts_row(3, "c")),
    )
    rig.produce(wire.dts_message(dts_insert(rig, "t", dts_row(9, "z"))))
    rig.produce(*wire.dts_parts(200, *entries))
    assert rig.run(dts_config(rig)) is Exit.OK
    assert rig.rows("t") == [(2, "b", 1), (3, "c", 1)]
    end = frontier(rig) - 1
    assert end > 1
    places = [row[2:4] for row in rig.rows("t_log", "_offset, _index")]
    assert places == [(0, 0), (end, 0), (end, 1), (end, 2)]


@pytest.mark.timeout(300)
def test_a_lost_message_is_told_and_never_passed(rig: Rig) -> None:
    """A gap in ``ps``: one line, status 1, and the same again at the next start."""
    config, shards = dts_config(rig), Shards(rig)
    message = wire.dts_message(dts_insert(rig, "t", dts_row(1, "a")))
    shards.send("b", message)
    shards.send("a", message)
    shards.send("b", message, skip=2)
    shards.send("a", message)
    line = (
        f"binlogd: p: {rig.topic}:0 offset 2, shard b: the running number (ps) is 4, expected is "
        "2: messages between were lost"
    )
    for _ in range(2):
        assert rig.run(config) is Exit.PIPELINE_FAILED
        assert rig.stderr.splitlines() == [line]
        assert frontier(rig) == 2
    assert [row[2] for row in rig.rows("t_log", "_offset")] == [0, 1]


@pytest.mark.timeout(300)
def test_a_missing_part_is_told_and_never_passed(rig: Rig) -> None:
    """Running numbers may be right and a part missing all the same: one line, status 1."""
    config, shards = dts_config(rig), Shards(rig)
    cut = parts_of(3, dts_insert(rig, "t", dts_row(1, "long " * 40)))
    shards.send("b", wire.dts_message(dts_insert(rig, "t", dts_row(9, "z"))), cut[0])
    shards.send("a", wire.dts_message(wire.dts_heartbeat()))
    shards.send("b", cut[2])
    line = (
        f"binlogd: p: {rig.topic}:0 offset 3, shard b: part 2 of 3 (version 1), expected is "
        "part 1 of 3 (version 1) of the message begun at offset 1"
    )
    for _ in range(2):
        assert rig.run(config) is Exit.PIPELINE_FAILED
        assert rig.stderr.splitlines() == [line]
        assert frontier(rig) == 1
    assert [row[0] for row in rig.rows("t")] == [9]
