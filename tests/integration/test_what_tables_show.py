"""What tables show, on the real broker and Spark: partial rows, moved keys, types, statements."""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest

from offsets.position import TopicPartition
from settings.exit import Exit
from tests.changes.formats.json_messages import as_json
from tests.integration.rig import Rig, canal, ddl

Row = dict[str, Any]


class Source:
    """A source table that tells of its changes no more than the columns that changed.

    ``rows`` is what it holds, ``messages`` what it wrote to its binlog (MINIMAL row images).
    """

    def __init__(self, table: str, seed: int) -> None:
        self.rows: dict[int, Row] = {}
        self.messages: list[bytes] = []
        self._table = table
        self._random = random.Random(seed)

    def change(self, count: int) -> None:
        """So many changes of any kind."""
        kinds = (self._insert, self._update, self._move, self._chain, self._swap, self._delete)
        for _ in range(count):
            self._random.choices(kinds, (4, 8, 3, 1, 1, 1))[0]()

    def _some(self) -> Row:
        names = self._random.sample(["name", "qty"], self._random.randint(0, 2))
        return {name: self._value(name) for name in names}

    def _value(self, name: str) -> Any:
        number = self._random.randint(1, 99)
        return self._random.choice([None, f"n{number}" if name == "name" else number])

    def _free(self) -> int:
        return next(key for key in iter(lambda: self._random.randint(1, 60), 0)
                    if key not in self.rows)  # fmt: skip

    def _any(self) -> int:
        return self._random.choice(sorted(self.rows))

    def _insert(self) -> None:
        key = self._free()
        self.rows[key] = {name: self._value(name) for name in ("name", "qty")}
        self.messages.append(canal(self._table, "INSERT", [{"id": key} | self.rows[key]]))

    def _update(self) -> None:
        if self.rows:
            self._write(self._any(), None)

    def _move(self) -> None:
        if self.rows:
            self._write(self._any(), self._free())

    def _chain(self) -> None:
        if self.rows:
            key = self._any()
            for _ in range(3):
                key = self._write(key, self._free())

    def _swap(self) -> None:
        if len(self.rows) > 1:
            one, other = self._random.sample(sorted(self.rows), 2)
            aside = self._write(one, self._free())
            self._write(other, one)
            self._write(aside, other)

    def _delete(self) -> None:
        if self.rows:
            key = self._any()
            del self.rows[key]
            self.messages.append(canal(self._table, "DELETE", [{"id": key}]))

    def _write(self, key: int, to: int | None) -> int:
        now, some = key if to is None else to, self._some()
        old = {} if to is None else {"id": str(key)}
        self.rows[now] = self.rows.pop(key) | some
        self.messages.append(canal(self._table, "UPDATE", [{"id": now} | some], old=[old]))
        return now


@pytest.mark.parametrize("seed", [1, 2])
def test_partial_rows_and_moved_keys_end_as_the_source_has_them(rig: Rig, seed: int) -> None:
    """In one batch and across batches: what a message lacks stays, null overwrites, keys move."""
    source = Source(f"{rig.db}.orders", seed)
    config = rig.write_config()
    for count in (40, 25, 60):
        source.messages.clear()
        source.change(count)
        rig.produce(*source.messages)
        assert rig.run(config) is Exit.OK
        expected = [(key, row["name"], row["qty"]) for key, row in sorted(source.rows.items())]
        assert rig.rows("orders") == expected


def test_a_part_of_a_row_that_is_not_there_makes_it(rig: Rig) -> None:
    """What the message lacks is null then: nobody has it."""
    t = f"{rig.db}.orders"
    rig.produce(canal(t, "INSERT", [{"id": 1, "name": "a", "qty": 1}]))
    assert rig.run() is Exit.OK
    rig.produce(canal(t, "UPDATE", [{"id": 2, "qty": 5}], old=[{"qty": None}]))
    assert rig.run() is Exit.OK
    assert rig.rows("orders") == [(1, "a", 1), (2, None, 5)]


TYPES = {"id": "bigint", "price": "decimal(10,2)", "paid": "boolean", "made": "timestamp"}


def maxwell(rig: Rig, kind: str, data: Mapping[str, Any], old: Any = None) -> bytes:
    told = {"database": rig.db, "table": "orders", "type": kind, "ts": 1477053217}
    told |= {"primary_key_columns": ["id"], "data": dict(data)}
    return as_json(told | ({} if old is None else {"old": old}))


def test_a_table_of_maxwells_has_the_declared_types(rig: Rig) -> None:
    """From the first row through updates, a moved key and a statement's new column."""
    config = rig.write_config(p=rig.pipeline(format="maxwell-json", types=TYPES))
    row = {"id": 1, "price": 1.5, "paid": 1, "made": "2020-05-13 15:40:06"}
    rig.produce(maxwell(rig, "insert", row))
    assert rig.run(config) is Exit.OK
    alter = {"type": "table-alter", "database": rig.db, "table": "orders", "ts": 1477053217000}
    alter["sql"] = "ALTER TABLE orders ADD COLUMN n int DEFAULT 7"
    rig.produce(
        as_json(alter),
        maxwell(rig, "update", {"id": 2, "paid": 0, "n": 8}, {"id": 1, "paid": 1}),
        maxwell(rig, "insert", {"id": 3, "price": None, "n": 9}),
    )
    assert rig.run(config) is Exit.OK
    moved = (2, Decimal("1.50"), False, datetime(2020, 5, 13, 15, 40, 6), "8")
    assert rig.rows("orders") == [moved, (3, None, None, None, "9")]


def test_a_value_that_is_none_of_its_declared_type_is_a_dead_letter(rig: Rig) -> None:
    """That record alone; the rest of the table goes on."""
    section = rig.pipeline(format="maxwell-json", types=TYPES, on_bad_record="dead-letter")
    rig.produce(
        maxwell(rig, "insert", {"id": 1, "price": 1.25}),
        maxwell(rig, "insert", {"id": 2, "price": "cheap"}),
        maxwell(rig, "insert", {"id": 3, "price": 2}),
    )
    assert rig.run(rig.write_config(p=section)) is Exit.OK
    assert rig.rows("orders") == [(1, Decimal("1.25")), (3, Decimal("2.00"))]
    letters = (rig.folder / "state" / "p.dead-letters.jsonl").read_text()
    assert "price: 'cheap' is not a decimal(10,2)" in letters


def test_a_type_that_can_not_fit_is_its_tables_error_alone(rig: Rig) -> None:
    """Named, with what is stored and what to do; no record of it is a dead letter."""
    bad, good = f"{rig.db}.bad", f"{rig.db}.good"
    text = {"mysqlType": {"id": "int(11)", "name": "varchar(255)", "qty": "varchar(9)"}}
    rig.produce(
        canal(bad, "INSERT", [{"id": 1, "name": "a", "qty": 1}]),
        canal(bad, "INSERT", [{"id": 2, "name": "b", "qty": "x"}], **text),
        canal(good, "INSERT", [{"id": 1, "name": "a", "qty": 1}]),
        canal(bad, "INSERT", [{"id": 3, "name": "c", "qty": "y"}], **text),
        canal(good, "INSERT", [{"id": 2, "name": "b", "qty": 2}]),
    )
    section = rig.pipeline(on_bad_record="dead-letter", on_refused_target="quarantine")
    assert rig.run(rig.write_config(p=section)) is Exit.OK
    assert rig.rows("good") == [(1, "a", 1), (2, "b", 2)]
    assert rig.rows("bad") == [(1, "a", 1)]
    assert rig.snapshot().spills[f"lake.{rig.db}.bad"].lanes == {
        TopicPartition(rig.topic, 0): (1, 3)
    }
    (said,) = rig.events("quarantined")
    assert "column qty is stored as long, which can't become string: declare" in said["reason"]
    assert "binlogd tables rebuild" in said["reason"]
    assert not (rig.folder / "state" / "p.dead-letters.jsonl").exists()


def test_a_table_that_changes_its_key_is_named_with_the_way_out(rig: Rig) -> None:
    """Rows of before can't be found by the new key."""
    t = f"{rig.db}.orders"
    rig.produce(
        canal(t, "INSERT", [{"id": 1, "name": "a", "qty": 1}]),
        canal(t, "INSERT", [{"id": 1, "name": "b", "qty": 2}], pkNames=["id", "name"]),
    )
    assert rig.run() is Exit.PIPELINE_FAILED
    assert "the table's key is (id), required is (id, name): set keys in its route" in rig.stderr
    assert "binlogd tables rebuild" in rig.stderr
    assert rig.rows("orders") == [(1, "a", 1)]


def test_a_column_whose_case_changes_stays_one_column(rig: Rig) -> None:
    """Without a statement that says so, in one batch and across batches."""
    t = f"{rig.db}.orders"
    types = {"ID": "int(11)", "NAME": "varchar(255)", "qty": "bigint(20)"}
    capital = {"mysqlType": types, "pkNames": ["ID"]}
    rig.produce(
        canal(t, "INSERT", [{"id": 1, "name": "a", "qty": 1}, {"id": 2, "name": "b", "qty": 2}]),
        canal(t, "UPDATE", [{"ID": 1, "NAME": "aa"}], old=[{"NAME": "a"}], **capital),
    )
    assert rig.run() is Exit.OK
    rig.produce(canal(t, "UPDATE", [{"ID": 2, "NAME": "bb"}], old=[{"NAME": "b"}], **capital))
    assert rig.run() is Exit.OK
    assert rig.rows("orders") == [(1, "aa", 1), (2, "bb", 2)]


def test_a_statement_that_nobody_understands_is_reported_and_rows_go_on(rig: Rig) -> None:
    """They show what the table is like from then on."""
    t = f"{rig.db}.orders"
    types = {"id": "bigint(20)", "name": "varchar(255)", "qty": "bigint(20)", "note": "text"}
    rig.produce(
        canal(t, "INSERT", [{"id": 1, "name": "a", "qty": 1}]),
        ddl(t, "ALTER", "ALTER TABLE orders FROBNICATE id, ADD note text"),
        canal(t, "INSERT", [{"id": 2**40, "name": "b", "qty": 2, "note": "n"}], mysqlType=types),
    )
    assert rig.run() is Exit.OK
    assert rig.rows("orders") == [(1, "a", 1, None), (2**40, "b", 2, "n")]
    (said,) = rig.events("ddl_not_understood")
    assert "FROBNICATE" in said["what"]
