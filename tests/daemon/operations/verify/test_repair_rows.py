"""Repairs beside rows that move, and of tables whose database refuses or changes some rows: real
MariaDB and PostgreSQL as source and as target."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from daemon.operations.verify.run import TableRun
from sources.base.port import Outgoing
from tests.daemon.operations.copies import Copy
from tests.daemon.operations.verify.rig import LANE
from tests.databases.base.servers import Server
from tests.needs import needed

COLUMNS = "id INT PRIMARY KEY, note VARCHAR(40), n INT"


@pytest.fixture(params=["mariadb", "postgresql"])
def server(request: pytest.FixtureRequest, servers: Mapping[str, Server]) -> Server:
    with needed():
        return servers[request.param]


@pytest.fixture
def copy(server: Server, tmp_path: Path) -> Copy:
    """Five rows, and their equal copy."""
    made = Copy(server, server, tmp_path)
    rows = ", ".join(f"({number}, 'note {number}', {number})" for number in range(1, 6))
    made.run(f"CREATE TABLE {{t}} ({COLUMNS})", f"INSERT INTO {{t}} VALUES {rows}")
    made.loaded()
    return made


def moved(copy: Copy, old: int, new: int) -> None:
    """A change of a key in the log that tells only some columns: MINIMAL in Canal's form, an
    unchanged TOAST value in Debezium's."""
    now_ms = round(time.time() * 1000)
    if copy.source.kind == "mariadb":
        canal = {
            "database": copy.schema, "table": "t", "type": "UPDATE", "isDdl": False, "es": now_ms,
            "pkNames": ["id"], "mysqlType": {"id": "int", "note": "varchar(40)", "n": "int"},
            "data": [{"id": str(new)}], "old": [{"id": str(old)}],
        }  # fmt: skip
        copy.log.produce(json.dumps(canal).encode())
        return
    source = {"db": copy.schema, "schema": copy.schema, "table": "t", "ts_ms": now_ms,
              "connector": "postgresql", "name": "x"}  # fmt: skip
    after = {"id": new, "note": "__debezium_unavailable_value", "n": old}
    gone = {"op": "d", "before": {"id": old, "note": None, "n": None}, "after": None}
    came = {"op": "c", "before": None, "after": after}
    for half, word, at, other in ((gone, "newkey", old, new), (came, "oldkey", new, old)):
        value = json.dumps({**half, "source": source, "ts_ms": now_ms}).encode()
        headers = ((f"__debezium.{word}", json.dumps({"id": other}).encode()),)
        key = json.dumps({"id": at}).encode()
        copy.log._put(Outgoing(LANE.topic, LANE.partition, key, value, headers))


def rows_of(copy: Copy) -> dict[int, tuple[str | None, int | None]]:
    return {row["id"]: (row["note"], row["n"]) for row in copy.stored().to_pylist()}


def at_edit(copy: Copy, act: Callable[[], None]) -> None:
    """Do something while the pipeline drains."""
    edit = copy.control.edit

    def late(pipeline: str, change: Any) -> None:
        act()
        edit(pipeline, change)

    copy.control.edit = late  # type: ignore[method-assign]


def test_a_key_that_changes_while_the_pipeline_drains_keeps_its_row(copy: Copy) -> None:
    """The stream has yet to move the row, and its change does not tell all of it: the row that
    stands there must be the right one."""
    copy.plant("UPDATE {t} SET note = 'wrong' WHERE id = 1")

    def act() -> None:
        copy.run("UPDATE {t} SET id = 10 WHERE id = 1")
        # It is in the log, and not written; Debezium tells it in two halves.
        copy.control.behind = 1 if copy.source.kind == "mariadb" else 2
        moved(copy, 1, 10)

    at_edit(copy, act)
    table = copy.verified(repair=True)
    assert [row["key"] for row in table["repaired"]] == [{"id": "1"}]
    assert rows_of(copy)[1] == ("note 1", 1)


def test_a_key_that_has_changed_before_the_pipeline_stands_is_left_out(copy: Copy) -> None:
    """Its row is elsewhere by now."""
    copy.plant("UPDATE {t} SET note = 'wrong' WHERE id = 1")

    def act() -> None:
        copy.run("UPDATE {t} SET id = 10 WHERE id = 1")
        moved(copy, 1, 10)
        copy.plant("UPDATE {t} SET id = 10 WHERE id = 1")

    at_edit(copy, act)
    table = copy.verified(repair=True)
    assert table["repaired"] == []
    assert "not repaired: 1 row, which the source changes just now" in table["notes"]
    assert rows_of(copy)[10] == ("wrong", 1)


def test_a_wrong_value_is_followed_to_the_key_that_it_moves_to(
    copy: Copy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a range that is read later to one that was read before, so that no sum shows it."""
    first = TableRun._first

    def meanwhile(run: TableRun, table: Any, here: Any) -> Any:
        found = first(run, table, here)
        copy.run("UPDATE {t} SET id = 10 WHERE id = 1")
        moved(copy, 1, 10)
        copy.plant("UPDATE {t} SET id = 10, note = 'wrong' WHERE id = 1")
        return found

    monkeypatch.setattr(TableRun, "_first", meanwhile)
    table = copy.verified()
    assert not table["equal"]
    assert [(row["key"], list(row["columns"])) for row in table["rows_that_differ"]] == [
        ({"id": "10"}, ["note"])
    ]


def test_rows_that_are_refused_for_good_are_named_and_the_others_repaired(copy: Copy) -> None:
    """By a foreign key that lacks its row, by one that still has it, by a check."""
    name = f"{copy.schema}_copy"
    copy.into.run(
        [
            f"CREATE TABLE {name}.parent (id INT PRIMARY KEY)",
            f"INSERT INTO {name}.parent VALUES (1), (2), (3), (4), (5), (9)",
            f"CREATE TABLE {name}.child (id INT, FOREIGN KEY (id) REFERENCES {name}.t (id))",
        ]
    )
    copy.plant(
        "UPDATE {t} SET n = 9 WHERE id IN (2, 3)",
        "UPDATE {t} SET note = 'x' WHERE id IN (4, 5)",
        "INSERT INTO {t} VALUES (7, 'extra', 9), (8, 'extra', 9)",
        f"INSERT INTO {name}.child VALUES (7)",
        f"DELETE FROM {name}.parent WHERE id = 2",
        f"ALTER TABLE {{t}} ADD FOREIGN KEY (n) REFERENCES {name}.parent (id)",
        "ALTER TABLE {t} ADD CONSTRAINT short CHECK (note <> 'note 4')",
    )
    edits = []
    at_edit(copy, lambda: edits.append(1))
    table = copy.verified(repair=True)
    refused = {int(row["key"]["id"]): row["why"] for row in table["not_repaired"]}
    assert refused.keys() == {2, 4, 7}
    assert "foreign key" in refused[2].lower()
    assert "foreign key" in refused[7].lower()
    assert "short" in refused[4]
    assert {int(row["key"]["id"]) for row in table["repaired"]} == {3, 5, 8}
    assert len(edits) == 1
    found = rows_of(copy)
    assert found[3] == ("note 3", 3)
    assert found[5] == ("note 5", 5)
    assert 8 not in found
    assert not table["equal"]


def test_a_row_that_needs_another_of_the_same_repair_is_written_after_it(copy: Copy) -> None:
    """Whatever their order is."""
    copy.plant("DELETE FROM {t} WHERE id IN (1, 5)", "UPDATE {t} SET n = NULL")
    copy.plant("ALTER TABLE {t} ADD FOREIGN KEY (n) REFERENCES {t} (id)")
    copy.run("UPDATE {t} SET n = 6 - id")
    table = copy.verified(repair=True)
    if copy.into.kind == "mariadb":
        assert "points to its own table" in table["skipped"]
        return
    assert table["not_repaired"] == []
    assert copy.verified()["equal"]


def test_what_the_server_makes_of_a_row_is_read_back(copy: Copy, server: Server) -> None:
    """A trigger of the user's."""
    if server.kind == "postgresql":
        copy.plant(
            f"CREATE FUNCTION {copy.schema}_copy.up() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN UPDATE {t} SET note = upper(note) WHERE id = new.id AND note <>"
            " upper(note); RETURN NULL; END $$",
            "UPDATE {t} SET note = 'wrong' WHERE id = 1",
            "CREATE TRIGGER up AFTER INSERT OR UPDATE ON {t} FOR EACH ROW EXECUTE FUNCTION"
            f" {copy.schema}_copy.up()",
        )
    else:
        copy.plant(
            "UPDATE {t} SET note = 'wrong' WHERE id = 1",
            f"CREATE TRIGGER {copy.schema}_copy.up1 BEFORE INSERT ON {{t}} FOR EACH ROW"
            " SET new.note = upper(new.note)",
            f"CREATE TRIGGER {copy.schema}_copy.up2 BEFORE UPDATE ON {{t}} FOR EACH ROW"
            " SET new.note = upper(new.note)",
        )
    table = copy.verified(repair=True)
    if server.kind != "postgresql":
        assert "its trigger up1 runs BEFORE a row is written" in table["skipped"]
        return
    assert table["repaired"] == []
    (row,) = table["not_repaired"]
    assert row["key"] == {"id": "1"}
    assert "the server changes it" in row["why"]
    assert row["columns"] == {"note": ["note 1", "NOTE 1"]}
    assert not table["equal"]
