"""Whatever type, attribute or trigger a table of the user's own has: it gives back what was
written, or is refused by name before the first row."""

from __future__ import annotations

import pyarrow as pa
import pytest

from changes.model.errors import TargetRefused
from changes.model.model import TargetName
from databases.base.errors import DatabaseError
from sparkwriter.sql.mysql.catalog import CHARACTER_SETS
from tests.own_tables.postgres_types import MADE
from tests.own_tables.tables import catalogue_of
from tests.own_tables.trial import Trial
from tests.own_tables.trials import trials

SEEDS = {"postgres": 20, "mariadb": 20, "mysql": 60}


def kind_of(server) -> str:
    return "postgres" if server.is_postgres else server.url.split(":")[1]


def trial(server, folder, sql) -> Trial:
    session = server.connect()
    catalogue = catalogue_of(kind_of(server), session.rows)
    session.close()
    return Trial(kind_of(server), server.connect, catalogue, folder)


@pytest.mark.long
def test_random_tables_hold_what_was_written_or_refuse_it(server, sql, tmp_path) -> None:
    """Hard values into random tables: ``python -m tests.own_tables`` goes on for as long as one
    likes."""
    tried = trial(server, tmp_path, sql)
    outcomes = [tried.run(seed) for seed in range(SEEDS[kind_of(server)])]
    assert not [(one.own.create, one.silent) for one in outcomes if one.silent]
    assert sum(one.taken > 0 for one in outcomes) > len(outcomes) / 5


@pytest.mark.soak
@pytest.mark.timeout(4000)
@pytest.mark.parametrize("kind", SEEDS)
def test_an_hour_of_random_tables(kind) -> None:
    """Of each server; it ends when nothing new is found."""
    assert trials(kind, 3600, first=100_000) == 0


TAKEN = {
    "postgres": {
        "bigint", "boolean", "bytea", "date", "double precision", "integer", "json", "real",
        "smallint", "text", "character varying", "timestamp with time zone",
        "timestamp without time zone", "varchar(3)", "varchar(40)", "varchar(2000)",
        "numeric(9,0)", "numeric(10,2)", "numeric(10,3)", "numeric(20,0)", "numeric(38,0)",
        "numeric(38,10)", "numeric(38,38)", "timestamp(6)", "timestamptz(6)", "float(10)",
        "float(40)", "mood", '"text"',
    },
    "mariadb": {
        *(f"{one}{end}" for one in ("TINYINT", "SMALLINT", "MEDIUMINT", "INT", "BIGINT")
          for end in ("", " UNSIGNED", "(4)")),
        *(f"{one}{end}" for one in ("DECIMAL", "DECIMAL(10,2)", "DECIMAL(10,3)", "DECIMAL(20,0)",
                                    "DECIMAL(38,0)", "DECIMAL(38,10)", "DECIMAL(38,30)")
          for end in ("", " UNSIGNED")),
        "BOOLEAN", "TINYINT(1)", "INT1", "INT2", "INT3", "INT4", "INT8", "MIDDLEINT", "FLOAT4",
        "FLOAT8", "REAL", "DOUBLE PRECISION", "NUMERIC(12,4)", "FIXED(9,1)", "FLOAT", "FLOAT(20)",
        "FLOAT(30)", "DOUBLE", "DATE", "DATETIME(6)", "TIMESTAMP(6)", "VARCHAR(3)", "VARCHAR(40)",
        "VARCHAR(2000)", "NATIONAL VARCHAR(40)", "CHARACTER VARYING(40)", "TINYTEXT", "TEXT",
        "TEXT(70000)", "MEDIUMTEXT", "LONGTEXT", "LONG", "LONG VARBINARY", "VARBINARY(3)",
        "VARBINARY(40)", "TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB", "JSON", "ENUM('a')",
        "ENUM('sad','ok','it''s','','two words','ü')", "ENUM('a\\\\b','tab	')", "SET('a')",
        "SET('sad','ok','it''s','ü')", "TEXT WITHOUT SYSTEM VERSIONING",
    },
}  # fmt: skip
TAKEN["mysql"] = TAKEN["mariadb"] - {"JSON", "TEXT WITHOUT SYSTEM VERSIONING"}


def test_each_type_of_the_server_is_taken_or_refused_by_name(server, sql, target, tmp_path) -> None:
    """The list is the server's own: a type that nobody has tried is refused."""
    kind, session = kind_of(server), server.connect()
    taken, made = set(), 0
    for at, type_ in enumerate(catalogue_of(kind, session.rows)):
        name = f"{target.table}_{at}"
        try:
            column = type_of_users(sql, type_, name) if kind == "postgres" else type_
            sql(f"CREATE TABLE shop.{name} (id bigint PRIMARY KEY, v {column})")
        except DatabaseError:
            continue  # a type that a column can't have, or of another version
        made += 1
        found = session.describe(TargetName("db", "shop", name))
        assert found is not None
        _, v = found.columns
        assert (v.lake is None) == bool(v.refused), (type_, v)
        if v.lake is not None:
            taken.add(type_)
        sql(f"DROP TABLE shop.{name}")
    session.close()
    assert taken == TAKEN[kind]
    assert made > 90


def type_of_users(sql, type_: str, name: str) -> str:
    if type_ not in MADE:
        return type_
    named = f"shop.{type_}" if type_.startswith('"') else f"shop.{name}_t"
    sql(f"DROP TYPE IF EXISTS {named} CASCADE", MADE[type_].format(name=named))
    return named


REFUSED = {
    "postgres": {
        "uuid": "it stores other letters than were written: make it text",
        "xml": "it stores other text than was written: make it text",
        "jsonb": "make it json",
        "time": "it rounds what is longer: make it text",
        "shop.word": "it is a domain",
        "text[]": "it was never tried: make it text",
        "inet": "it was never tried: make it text",
    },
    "mysql": {
        "time(6)": "it stores other text than was written: make it varchar",
        "varchar(40) CHARACTER SET sjis": "its character set sjis was never tried",
        "int zerofill": "leave out ZEROFILL",
        "timestamp(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6)":
            "it changes by itself with each update: leave out ON UPDATE",
        "bigint NOT NULL AUTO_INCREMENT UNIQUE": "it makes a number of NULL",
        "point": "it was never tried: make it longtext",
    },
}  # fmt: skip


@pytest.mark.parametrize("at", range(7))
def test_what_a_refused_column_is_told_as(at, server, sql, writer, typed, target) -> None:
    """By its name and type, with a way out; beside a column that the source does not send it is
    the user's own business."""
    cases = list(REFUSED["postgres" if server.is_postgres else "mysql"].items())
    if at >= len(cases):
        return
    type_, said = cases[at]
    if server.is_postgres:
        sql("DROP DOMAIN IF EXISTS shop.word CASCADE", "CREATE DOMAIN shop.word AS text")
    sql(f"CREATE TABLE shop.{target.table} (id bigint PRIMARY KEY, v {type_})")
    one = pa.array([1], pa.int64())
    with pytest.raises(TargetRefused, match=said) as caught:
        writer.write(typed(1, id=one, v=pa.array(["a"])))
    assert "column v" in str(caught.value)
    assert sql(f"SELECT count(*) FROM shop.{target.table}") == [(0,)]
    writer.write(typed(1, id=one))
    assert sql(f"SELECT count(*) FROM shop.{target.table}") == [(1,)]


def test_a_key_of_a_refused_type_is_named(server, sql, writer, typed, target) -> None:
    """With the reason: it is not that the column is gone."""
    type_ = "uuid" if server.is_postgres else "time(6)"
    sql(f"CREATE TABLE shop.{target.table} (id {type_} PRIMARY KEY)")
    with pytest.raises(
        TargetRefused, match=r"column id, part of the key, is \w+.*: it stores other"
    ):
        writer.write(typed(1, id=pa.array(["10:00:00"])))


def test_zero_is_no_wish_for_a_number(server, sql, writer, typed, tables, target) -> None:
    """Of AUTO_INCREMENT and of an identity: 0 stays 0, and an update of it is one."""
    auto = "GENERATED BY DEFAULT AS IDENTITY" if server.is_postgres else "AUTO_INCREMENT"
    sql(f"CREATE TABLE shop.{target.table} (id bigint {auto} PRIMARY KEY, v int)")
    ids = pa.array([5, 0], pa.int64())
    writer.write(typed(1, id=ids, v=pa.array([1, 1], pa.int32())))
    writer.write(typed(2, 1, id=ids, v=pa.array([2, 2], pa.int32())))
    assert sorted(tables.read(target)["id"].to_pylist()) == [0, 5]


def test_null_is_no_wish_for_the_present_moment(server, sql, writer, typed, target) -> None:
    """MariaDB takes it for one, whatever its settings are; in a key there is no NULL."""
    if server.is_postgres:
        return
    name = f"shop.{target.table}"
    sql(f"CREATE TABLE {name} (id timestamp(6) PRIMARY KEY, v timestamp(6) NOT NULL)")
    moments = pa.array([10**15], pa.timestamp("us", "UTC"))
    with pytest.raises(TargetRefused, match="makes the present moment of NULL: let it be NULL"):
        writer.write(typed(1, id=moments, v=pa.array([None], moments.type)))
    sql(f"ALTER TABLE {name} MODIFY v timestamp(6) NULL")
    writer.write(typed(1, id=moments, v=pa.array([None], moments.type)))
    assert sql(f"SELECT v FROM {name}") == [(None,)]


@pytest.mark.parametrize("type_", [pa.float32(), pa.float64()])
def test_a_zero_below_zero_is_kept_or_refused(server, writer, tables, typed, target, type_) -> None:
    """MariaDB has none."""
    batch = typed(1, id=pa.array([1], pa.int64()), v=pa.array([-0.0], type_))
    if kind_of(server) == "mariadb":
        with pytest.raises(TargetRefused, match=r"column v: the number -0\.0, below zero"):
            writer.write(batch)
        writer.write(typed(1, id=pa.array([1], pa.int64()), v=pa.array([0.0], type_)))
    else:
        writer.write(batch)
        assert str(tables.read(target)["v"].to_pylist()) == "[-0.0]"


def test_a_text_of_json_stays_as_it_was(server, sql, writer, typed, tables, target) -> None:
    """Blanks, order and digits; a text that is no JSON is refused."""
    if not server.is_postgres:
        return  # MySQL's stores another text, and is refused
    sql(f"CREATE TABLE shop.{target.table} (id bigint PRIMARY KEY, v json)")
    text = '{"b":1,  "a": 1.50, "a": 2}'
    writer.write(typed(1, id=pa.array([1], pa.int64()), v=pa.array([text])))
    assert tables.read(target)["v"].to_pylist() == [text]
    with pytest.raises(TargetRefused, match="invalid input syntax for type json"):
        writer.write(typed(2, 1, id=pa.array([2], pa.int64()), v=pa.array(["a"])))


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_each_character_is_itself_in_the_sets_that_are_taken(server, sql) -> None:
    """Or has no place in it, which the server says."""
    if kind_of(server) != "mariadb":
        return  # MySQL's sets are the same, and MariaDB alone makes numbers as rows
    point = "CONVERT(CHAR(seq USING utf32) USING utf8mb4)"
    surrogate = f"{0xD800} AND {0xDFFF}"
    for name in CHARACTER_SETS - {"utf8"}:
        there = f"CONVERT({point} USING {name})"
        back = f"CONVERT({there} USING utf8mb4)"
        wrong = sql(
            f"SELECT seq, HEX({there}) FROM shop.seq_0_to_1114111 WHERE seq NOT BETWEEN {surrogate}"
            f" AND CAST({back} AS BINARY) <> CAST({point} AS BINARY)"
            f" AND CAST({back} AS BINARY) <> '?' LIMIT 5"
        )
        assert wrong == [], name
        merged = sql(
            f"SELECT HEX({there}), COUNT(*) FROM shop.seq_0_to_1114111"
            f" WHERE seq NOT BETWEEN {surrogate} AND CAST({back} AS BINARY) <> '?'"
            " GROUP BY 1 HAVING COUNT(*) > 1 LIMIT 5"
        )
        assert merged == [], name
