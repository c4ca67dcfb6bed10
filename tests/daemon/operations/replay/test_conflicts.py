"""What came after a letter's record: when it may be appended, and what speaks against it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from changes.formats import FORMATS
from changes.formats.engine.format import pack
from changes.model.model import FormatOptions, Mode
from changes.routes.routing import Route, Router
from daemon.operations.replay.conflicts import (
    REPLAYED,
    Candidate,
    ConflictFinder,
    Letters,
    doubt_peers,
    read_now,
)
from sources.base.port import LogRecord
from tests.changes.formats.debezium.messages import (
    Fields,
    dumps,
    envelope,
    key_with_schema,
    wrapped,
)
from tests.changes.formats.protobuf_records import (
    canal_column,
    canal_ddl,
    canal_packet,
    canal_row,
    canal_rows,
)
from tests.daemon.state.dead_letters.letters import S0

T = "lake.db.t"
NOBODY: Letters = frozenset()


def router(mode: Mode = Mode.UPSERT, keys: tuple[str, ...] | None = None) -> Router:
    return Router([Route(("db.*",), (), "lake.{database}.{table}", mode, keys)])


def canal(key: int | None, table: str = "t", kind: str = "INSERT", **more: Any) -> bytes:
    row = {"name": "a"} if key is None else {"id": str(key), "name": "a"}
    message = {
        "database": "db", "table": table, "type": kind, "isDdl": False, "pkNames": ["id"],
        "mysqlType": {"id": "int", "name": "varchar(9)"}, "data": [row], "old": None,
        "es": 1, "ts": 1, "sql": "",
    } | more  # fmt: skip
    return json.dumps(message).encode()


def statement(sql: str, kind: str = "ALTER") -> bytes:
    return canal(0, kind=kind, isDdl=True, sql=sql, data=None, mysqlType=None, pkNames=None)


def record(offset: int, value: bytes | None, replayed: int | None = None) -> LogRecord:
    headers = () if replayed is None else ((REPLAYED, f"{S0}:{replayed}".encode()),)
    return LogRecord(offset, None, value, headers, 0)


def candidate(
    offset: int, value: bytes, replayed: int | None = None, by: Router | None = None
) -> Candidate:
    made = FORMATS["canal-json"](FormatOptions())
    return read_now(made, by or router(), S0, record(offset, value, replayed), value)


def doubts(
    of: Candidate | Sequence[Candidate],
    *later: LogRecord,
    letters: Letters = NOBODY,
    by: Router | None = None,
) -> list[str]:
    """All that speaks against candidates, after those records came."""
    some = [of] if isinstance(of, Candidate) else of
    made = FORMATS["canal-json"](FormatOptions())
    found = ConflictFinder(made, by or router(), S0, some, letters)
    for one in later:
        found.examine(one)
    found.finish()
    return [doubt for c in some for doubt in c.doubts]


def test_nothing_speaks_against_a_row_that_did_not_change_since() -> None:
    """Other rows of its table and rows of other tables don't matter."""
    later = (record(8, canal(2)), record(9, canal(1, table="other")))
    assert doubts(candidate(7, canal(1)), *later) == []


def test_a_newer_change_of_its_row_speaks_against_it() -> None:
    """It would be undone. The first offset is named."""
    later = (record(8, canal(2)), record(9, canal(1, kind="UPDATE")))
    assert doubts(candidate(7, canal(1)), *later) == [f"{T}: its row 1 changed since, offset 9"]


def test_a_newer_deletion_of_its_row_speaks_against_it() -> None:
    """The row would be there again."""
    assert doubts(candidate(7, canal(1)), record(8, canal(1, kind="DELETE")))


def test_a_row_that_was_moved_to_its_key_speaks_against_it() -> None:
    """And one that was moved away from it."""
    moved = canal(2, kind="UPDATE", old=[{"id": "1"}])
    assert doubts(candidate(7, canal(1)), record(8, moved))
    assert doubts(candidate(7, canal(2)), record(8, moved))


@pytest.mark.parametrize(
    ("sql", "kind", "speaks"),
    [
        ("ALTER TABLE t ADD COLUMN c int", "ALTER", False),
        ("ALTER TABLE t MODIFY COLUMN name varchar(99)", "ALTER", False),
        ("ALTER TABLE t RENAME COLUMN name TO n", "ALTER", True),
        ("ALTER TABLE t CHANGE COLUMN name n varchar(99)", "ALTER", True),
        ("TRUNCATE TABLE t", "TRUNCATE", True),
        ("DROP TABLE t", "ERASE", True),
        ("RENAME TABLE t TO u", "RENAME", True),
        ("ALTER TABLE t FROBNICATE a", "ALTER", True),
    ],
)
def test_statements_that_take_rows_or_names_away_speak_against_it(
    sql: str, kind: str, speaks: bool
) -> None:
    """A row of before would come into a table that was emptied, or is another one."""
    assert bool(doubts(candidate(7, canal(1)), record(8, statement(sql, kind)))) == speaks


def test_a_later_record_that_can_not_be_read_may_be_of_the_same_row() -> None:
    """Whoever applied it knew more than we do now."""
    (found,) = doubts(candidate(7, canal(1)), record(8, canal(None)))
    assert found.startswith(f"{T}: offset 8 can't be read, so it may be of the same row: ")
    (found,) = doubts(candidate(7, canal(1)), record(8, b"garbage"))
    assert found.startswith("offset 8 can't be read: not a Canal message")


def test_a_later_record_whose_schema_can_not_be_had_is_a_doubt_unless_it_is_a_letter() -> None:
    """Only of what is behind it may it have changed a row."""
    for letters in (NOBODY, frozenset({(S0, 8, None)})):
        before, behind = candidate(7, canal(1)), candidate(9, canal(2))
        made = FORMATS["canal-json"](FormatOptions())
        lacking = ("registry main: schema id 3 is not there",)
        found = ConflictFinder(
            made, router(), S0, [before, behind], letters, lambda message, why=lacking: why
        )
        found.examine(record(8, canal(1)))
        found.finish()
        doubt = f"offset 8 can't be read: {lacking[0]}"
        assert (before.doubts, behind.doubts) == ([] if letters else [doubt], [])


@pytest.mark.parametrize("value", [canal(None), b"garbage"])
def test_a_later_letter_that_is_still_bad_was_never_applied(value: bytes) -> None:
    """So it is not newer than what the table has."""
    letter = (S0, 8, None if value == b"garbage" else T)
    assert not doubts(candidate(7, canal(1)), record(8, value), letters=frozenset({letter}))


def test_a_later_letter_that_is_good_now_may_have_been_applied() -> None:
    """When its partition was read again, after the fix."""
    letter = frozenset({(S0, 8, T)})
    assert doubts(candidate(7, canal(1)), record(8, canal(1)), letters=letter)


def test_a_later_record_that_is_another_targets_letter_was_applied_in_this_one() -> None:
    """A record may go to several targets, and be bad for one."""
    elsewhere = frozenset({(S0, 8, "lake.other.t")})
    assert doubts(candidate(7, canal(1)), record(8, canal(1)), letters=elsewhere)


def test_a_chunk_with_a_bad_record_is_still_looked_at() -> None:
    """Its good records before and behind it have keys."""
    letter = frozenset({(S0, 9, T)})
    later = (record(8, canal(2)), record(9, canal(None)), record(10, canal(1)))
    assert doubts(candidate(7, canal(1)), *later, letters=letter) == [
        f"{T}: its row 1 changed since, offset 10"
    ]


def test_two_letters_of_one_row_may_follow_each_other_in_their_order() -> None:
    """Each speaks only against those that are older."""
    letters = frozenset({(S0, 7, T), (S0, 8, T)})
    two = [candidate(7, canal(1)), candidate(8, canal(1))]
    assert doubts(two, record(8, canal(1)), letters=letters) == []


def test_the_older_letter_of_a_row_may_not_follow_the_younger() -> None:
    """A replayed record is as old as it was at first."""
    younger = record(20, canal(1), replayed=8)
    letters = frozenset({(S0, 7, T), (S0, 8, T)})
    assert doubts(candidate(7, canal(1)), younger, letters=letters)
    assert not doubts(candidate(8, canal(1)), record(20, canal(1), replayed=7), letters=letters)


def test_a_letter_that_stays_behind_may_be_applied_in_another_target() -> None:
    """It is bad for one alone, so for the other it is a change like any."""
    by = Router(
        [
            Route(("db.*",), (), "lake.{database}.{table}", Mode.UPSERT),
            Route(("db.*",), (), "lake.other.{table}", Mode.UPSERT, ("name",)),
        ]
    )
    bad = canal(1, data=[{"id": "1"}])
    two = [candidate(7, canal(1), by=by), candidate(8, bad, by=by)]
    assert two[1].problems
    letter = frozenset({(S0, 8, "lake.other.t")})
    assert doubts(two, record(8, bad), letters=letter, by=by) == [
        f"{T}: its row 1 changed since, offset 8"
    ]


def test_an_older_letter_does_not_go_without_a_younger_one_that_is_refused() -> None:
    """The younger may have been applied meanwhile; of another row it does not matter."""
    one, two, other = candidate(7, canal(1)), candidate(8, canal(1)), candidate(6, canal(2))
    two.doubt("its changelog")
    doubt_peers([one, two, other])
    assert one.doubts == [f"{T}: {S0}:8 is of the same row, and is refused"]
    assert not other.doubts


def test_a_letter_of_a_replayed_record_is_as_old_as_its_first_place() -> None:
    """It was bad again at 20; the change at 10 had been applied before that."""
    again = candidate(20, canal(1), replayed=7)
    assert doubts(again, record(21, canal(1), replayed=8))
    assert not doubts(candidate(20, canal(1), replayed=7), record(21, canal(1), replayed=5))


def test_a_record_that_was_replayed_is_recognised_in_the_log() -> None:
    """Whatever became of its mark."""
    one = candidate(7, canal(1))
    doubts(one, record(8, canal(1), replayed=7))
    assert one.replayed_at == [8]


def test_a_record_that_is_still_bad_is_a_problem() -> None:
    """It would only become a letter again."""
    assert candidate(7, canal(None)).problems == [
        "it can't be applied yet: db.t: key column id is missing"
    ]
    assert candidate(7, b"garbage").problems[0].startswith("it can't be applied yet: not a Canal")


def test_a_record_that_no_route_wants_any_more_is_a_problem() -> None:
    """Nothing would come of it."""
    other = json.loads(canal(1)) | {"database": "elsewhere"}
    (found,) = candidate(7, json.dumps(other).encode()).problems
    assert found == "there is nothing in it that a route wants"


def test_a_changelog_is_doubted() -> None:
    """Its rows are told apart by their offsets."""
    append = router(Mode.APPEND)
    (found,) = candidate(7, canal(1), by=append).doubts
    assert found.startswith(f"{T} is a changelog")


def test_a_statement_is_doubted() -> None:
    """It changes what comes after it, and that has come."""
    (found,) = candidate(7, statement("ALTER TABLE t ADD COLUMN c int")).doubts
    assert "it is a statement" in found


def test_a_changed_key_without_the_whole_row_is_doubted() -> None:
    """A repair may have put the row under its new key since, which no log tells; a whole row brings
    all that it needs."""
    part = canal(2, kind="UPDATE", data=[{"id": "2"}], old=[{"id": "1"}])
    (doubt,) = candidate(5, part).doubts
    assert "tells a part of the row only" in doubt
    assert candidate(5, canal(2, kind="UPDATE", old=[{"id": "1"}])).doubts == []
    assert candidate(5, canal(1, kind="UPDATE", data=[{"id": "1"}], old=[{}])).doubts == []


def test_rows_are_compared_by_the_key_of_the_route() -> None:
    """It may be another than the messages name."""
    by = router(keys=("name",))
    one = candidate(7, canal(1), by=by)
    assert doubts(one, record(8, canal(2)), by=by) == [f"{T}: its row a changed since, offset 8"]


# --- other formats


def read_by(name: str, value: bytes, offset: int = 7) -> Candidate:
    """A candidate of a format that is not keyed, and goes to ``lake.s.*``."""
    routes = Router([Route(("*",), (), "lake.{database}.{table}", Mode.UPSERT)])
    return read_now(FORMATS[name](FormatOptions()), routes, S0, record(offset, value), value)


def test_a_message_of_several_tables_touches_all_of_them() -> None:
    """One of them made it a letter; the others would get it again."""

    def rows(table: str, key: str) -> bytes:
        row = canal_row(after=[canal_column("id", key, "int", key=True)])
        return canal_rows("INSERT", [row], table)

    one = read_by("canal-protobuf", canal_packet(rows("t", "1"), rows("u", "2")))
    assert one.keys == {"lake.s.t": {("1",)}, "lake.s.u": {("2",)}}
    routes = Router([Route(("*",), (), "lake.{database}.{table}", Mode.UPSERT)])
    found = ConflictFinder(FORMATS["canal-protobuf"](FormatOptions()), routes, S0, [one], NOBODY)
    found.examine(record(8, canal_packet(rows("t", "9"), rows("u", "2"))))
    found.finish()
    assert one.doubts == ["lake.s.u: its row 2 changed since, offset 8"]


def test_a_message_that_statements_divide_touches_all_its_rows() -> None:
    """Those before the statement and those behind it; the statement itself is doubted."""

    def rows(key: str) -> bytes:
        row = canal_row(after=[canal_column("id", key, "int", key=True)])
        return canal_rows("INSERT", [row], "t")

    added = canal_ddl("ALTER", "ALTER TABLE t ADD c int DEFAULT 1")
    one = read_by("canal-protobuf", canal_packet(rows("1"), added, rows("2")))
    assert one.keys == {"lake.s.t": {("1",), ("2",)}}
    assert [doubt for doubt in one.doubts if "it is a statement" in doubt]
    plain = read_by("canal-protobuf", canal_packet(rows("3")))
    routes = Router([Route(("*",), (), "lake.{database}.{table}", Mode.UPSERT)])
    found = ConflictFinder(FORMATS["canal-protobuf"](FormatOptions()), routes, S0, [plain], NOBODY)
    found.examine(record(8, canal_packet(rows("3"), added, rows("4"))))
    found.finish()
    assert plain.doubts == ["lake.s.t: its row 3 changed since, offset 8"]


def test_keys_in_record_keys_are_compared() -> None:
    """A tombstone is nothing but a key."""
    made = FORMATS["debezium-json"](FormatOptions())
    by = Router([Route(("*",), (), "lake.{database}.{table}", Mode.UPSERT)])
    fields: Fields = {"id": "int32", "name": "string"}
    key = dumps(key_with_schema({"id": 1}, {"id": "int32"}))
    value = dumps(wrapped(envelope("c", {"id": 1, "name": "a"}), fields))
    first = LogRecord(7, key, value, (), 0)
    one = read_now(made, by, S0, first, pack(key, value))
    assert not one.problems
    ((target, keys),) = one.keys.items()
    assert keys == {("1",)}
    found = ConflictFinder(made, by, S0, [one], NOBODY)
    gone = dumps(wrapped(envelope("d", None, {"id": 1, "name": "a"}), fields))
    found.examine(LogRecord(8, key, gone, (), 0))
    found.finish()
    assert one.doubts == [f"{target}: its row 1 changed since, offset 8"]
