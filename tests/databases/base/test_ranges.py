"""Ranges of real tables: every row in one range, whatever its key's type and collation."""

from __future__ import annotations

import re
from collections.abc import Mapping
from random import Random

import pytest

from changes.model.model import TableName
from databases.base.errors import DatabaseRefused
from databases.base.port import ALL_ROWS, KeyRange
from databases.base.selects import text_of
from tests.databases.base.servers import SERVERS, Server

pytestmark = pytest.mark.integration

RNG = Random(7)
NUMBERS = [str(RNG.randint(0, 2**31 - 1)) for _ in range(40)]
WORDS = [
    "''", "' '", "'a'", "'b '", "'z'", "'Ab'", "'aa'", "'ä'", "'ß'", "'数据'", "'🙂'", "'it''s'",
    "'%'", "'_'", "'{x}'", "'a-b'", "'ab'", "'Z1'", "'\"'", "'~'", "'0'", "'10'", "'9'",
]  # fmt: skip
BYTES = ["''", *(f"x'{RNG.randbytes(n % 5).hex()}{n:02x}'" for n in range(30)), "x'0000'"]
DAYS = [f"'{y}-0{m}-1{m} 0{m}:00:00'" for y in (1971, 1999, 2024, 2037) for m in range(1, 7)]
DOUBLES = [
    "0",
    "-1.5e0",
    "1e300",
    "5e-324",
    "0.1e0",
    *(repr(RNG.uniform(-1e9, 1e9)) for _ in "a" * 20),
]

MYSQL = {
    "INT": NUMBERS, "BIGINT UNSIGNED": ["18446744073709551615", "9223372036854775808", *NUMBERS],
    "VARCHAR(20) COLLATE utf8mb4_general_ci": [word for word in WORDS[3:] if word != "'ab'"],
    "VARCHAR(20) COLLATE utf8mb4_bin": WORDS[1:],
    "VARCHAR(20) CHARACTER SET latin1 COLLATE latin1_swedish_ci": ["'ü'", "'é'", *WORDS[3:9]],
    "CHAR(9) COLLATE utf8mb4_bin": WORDS[2:], "VARBINARY(9)": BYTES,
    "BINARY(4)": [f"x'{n:02x}00{n % 3:02x}00'" for n in range(40)],
    "ENUM('z','it''s','a','数')": ["'z'", "'it''s'", "'a'", "'数'"],
    "SET('y','x','w')": ["''", "'y'", "'x'", "'y,w'", "'y,x,w'"],
    "DATE": [f"'{y}-{m:02}-05'" for y in (1000, 1970, 9999) for m in range(1, 13)],
    "DATETIME(6)": [*(day[:-1] + ".000001'" for day in DAYS), "'0000-00-00 00:00:00'"],
    "TIMESTAMP(6)": DAYS, "TIME": ["'-838:59:59'", "'00:00:00'", "'838:59:59'", "'-00:00:01'"],
    "DECIMAL(30,5)": [f"-{n}.{n:05}" for n in range(20)] + ["99999999999999999999999.99999"],
    "DOUBLE": DOUBLES, "FLOAT": ["0.1", "-1.5", "3.4e38", *(f"{n}.7" for n in range(20))],
    "YEAR": ["1901", "2155", "0", *map(str, range(1970, 2000))],
    "BIT(9)": [f"b'{n:09b}'" for n in range(0, 512, 13)],
}  # fmt: skip
POSTGRESQL = {
    "smallint": [str(n) for n in range(-20, 20)], "bigint": NUMBERS, 'text COLLATE "C"': WORDS,
    "text": WORDS, "varchar(20)": WORDS, "char(9)": WORDS[2:],
    "uuid": [f"'{RNG.randbytes(16).hex()}'" for _ in range(30)],
    "bytea": [f"'\\x{RNG.randbytes(n % 7).hex()}{n:02x}'" for n in range(30)],
    "numeric": [f"-{n}.{n:05}" for n in range(20)] + ["1e40", "'NaN'", "0.10"],
    "double precision": [*DOUBLES, "'NaN'", "'Infinity'"],
    "real": ["0.1", "-1.5", "3.4e38", "16777216"],
    "boolean": ["true", "false"], "bit(4)": [f"B'{n:04b}'" for n in range(16)],
    "date": [f"'{y}-{m:02}-05'" for y in (1, 1970, 9999) for m in range(1, 13)],
    "timestamptz": [f"{day[:-1]}.000001+05:30'" for day in DAYS], "timestamp": DAYS,
    "time": ["'00:00'", "'23:59:59.999999'", "'12:00:00.5'"],
    "inet": ["'10.0.0.1/8'", "'10.0.0.1'"],
    "level": ["'low'", "'it''s'", "'high'"],
    "public.citext": ["'a'", "'B'", "'c'", "'D'", "'e'", "'F'", "'_'", "'it''s'", "'Z'", "''"],
    "public.ltree": ["'a'", "'a.b'", "'a.b.c'", "'B'", "'a_b'", "'b.1'", "'b.10'", "'b.9'"],
    "lower_case": ["'a'", "'B'", "'c'", "'D'", "'e'"],
    'text COLLATE "any_case"': ["'a'", "'B'", "'c'", "'D'", "'ä'", "'Z'", "'é'"],
    "macaddr": [f"'08:00:2b:01:02:{n:02x}'" for n in range(9)],
    "cidr": ["'10.0.0.0/8'", "'10.0.0.0/9'", "'10.1.0.0/16'", "'::/0'", "'0.0.0.0/0'"],
    "int4range": ["'[1,5)'", "'empty'", "'[1,2)'", "'(,3)'", "'[2,)'"],
    "jsonb": ["'1'", "'null'", "'[]'", "'{\"a\": 1.50}'", "'\"x\"'", "'10'", "'9'"],
}  # fmt: skip
KINDS = [
    *(("mariadb", type_) for type_ in MYSQL), *(("postgresql", type_) for type_ in POSTGRESQL),
    *(pytest.param("mysql", type_, marks=pytest.mark.soak) for type_ in MYSQL),
]  # fmt: skip


def made(server: Server, name: str, columns: str, rows: list[str]) -> TableName:
    """A table with rows, in the place of one of its name."""
    quote = '"' if server.kind == "postgresql" else "`"
    where = f"k.{quote}{name.replace(quote, quote * 2)}{quote}"
    if server.kind == "postgresql":
        begin = ["DROP SCHEMA IF EXISTS k CASCADE", "CREATE SCHEMA k"]
        begin += ["CREATE TYPE k.level AS ENUM ('low', 'it''s', 'high')"]
        begin += [f"CREATE EXTENSION IF NOT EXISTS {one}" for one in ("citext", "ltree")]
        begin += ["CREATE DOMAIN k.lower_case AS public.citext"]
        begin += [
            "CREATE COLLATION k.any_case (provider = icu, locale = 'und-u-ks-level2',"
            " deterministic = false)"
        ]
    else:
        begin = ["DROP SCHEMA IF EXISTS k", "CREATE SCHEMA k CHARACTER SET utf8mb4"]
        begin += ["SET sql_mode = ''", "SET NAMES utf8mb4"]
    server.run([
        *begin, f"CREATE TABLE {where} ({columns})", f"INSERT INTO {where} VALUES {', '.join(rows)}"
    ])  # fmt: skip
    return TableName("k", name)


def assert_each_row_once(server: Server, name: TableName, rows: int, size: int) -> None:
    """The ranges hold each row once, none is larger, and the key's text finds the row again."""
    with_database = server.open()
    try:
        table = with_database.describe(name)
        number = table.column("n")
        ranges = list(with_database.ranges(table, size))
        assert (ranges[0].low, ranges[-1].high) == (None, None)
        assert [part.high for part in ranges[:-1]] == [part.low for part in ranges[1:]]
        found = [with_database.ask(with_database.query(table, [number], p)) for p in ranges]
        assert sorted(int(str(row[0])) for some in found for row in some) == list(range(rows))
        assert [len(some) for some in found[:-1]] == [size] * (len(found) - 1)
        key = [table.column(column) for column in table.keys]
        texts = with_database.ask(with_database.query(table, [*key, number], ALL_ROWS))
        keys = [tuple(str(text_of(one)) for one in row[:-1]) for row in texts]
        again = with_database.rows(table, [number], keys)
        assert again == {one: (row[-1],) for one, row in zip(keys, texts, strict=True)}
    finally:
        with_database.close()


@pytest.mark.parametrize(("kind", "type_"), KINDS)
def test_a_key_of_each_type(kind: str, type_: str, servers: dict[str, Server]) -> None:
    """Alone, and as the second part of a key."""
    server, values = servers[kind], (POSTGRESQL if kind == "postgresql" else MYSQL)[type_]
    type_ = re.sub('level|lower_case|"any_case"', r"k.\g<0>", type_)
    rows = [f"({value}, {n})" for n, value in enumerate(values)]
    name = made(server, "one", f"a {type_} NOT NULL PRIMARY KEY, n INT", rows)
    assert_each_row_once(server, name, len(rows), 3)
    rows = [f"({n % 3}, {value}, {n})" for n, value in enumerate(values)]
    columns = f"g INT NOT NULL, a {type_} NOT NULL, n INT, PRIMARY KEY (g, a)"
    assert_each_row_once(server, made(server, "two", columns, rows), len(rows), 4)


@pytest.mark.parametrize("kind", ["mariadb", "mysql", "postgresql"])
def test_hostile_names(kind: str, servers: dict[str, Server]) -> None:
    """A table and columns with signs that quote, end, comment, format and expand."""
    server = servers[kind]
    mark = '"' if kind == "postgresql" else "`"
    odd = 'a"b`c; -- ${x} %s \\ ü'
    spelled = mark + odd.replace(mark, mark * 2) + mark
    name = made(server, odd, f"{spelled} INT NOT NULL PRIMARY KEY, n INT", ["(1, 0)", "(2, 1)"])
    assert_each_row_once(server, name, 2, 1)
    database = server.open()
    try:
        assert database.tables("k.*") == [name]
        assert database.describe(name).keys == (odd,)
    finally:
        database.close()


@pytest.mark.parametrize("kind", ["mariadb", "mysql", "postgresql"])
def test_a_range_of_an_empty_table(kind: str, servers: dict[str, Server]) -> None:
    """Is one, and open."""
    server = servers[kind]
    name = made(server, "t", "a INT PRIMARY KEY", ["(1)"])
    server.run(["DELETE FROM k.t"])
    database = server.open()
    try:
        assert list(database.ranges(database.describe(name), 5)) == [ALL_ROWS]
    finally:
        database.close()


@pytest.mark.parametrize("kind", ["mariadb", "mysql", "postgresql"])
def test_the_key_is_the_primary_one_or_a_unique_one_that_is_never_null(
    kind: str, servers: dict[str, Server]
) -> None:
    """No other index tells rows apart."""
    server = servers[kind]
    columns = "a INT NOT NULL, b INT, c INT NOT NULL, UNIQUE (b), UNIQUE (c, a)"
    name = made(server, "t", columns, ["(1, 1, 1)"])
    database = server.open()
    try:
        assert database.describe(name).keys == ("c", "a")
        name = made(server, "t", "a INT, UNIQUE (a)", ["(1)"])
        table = database.describe(name)
        assert table.keys == ()
        with pytest.raises(DatabaseRefused, match="has no key"):
            next(database.ranges(table, 5))
    finally:
        database.close()


@pytest.mark.parametrize("kind", ["mariadb", "mysql", "postgresql"])
def test_bounds_are_read_from_the_index(kind: str, servers: dict[str, Server]) -> None:
    """A range and the step behind it look at their own rows, not at all those before."""
    server = servers[kind]
    rows = [f"({n % 7}, 'k{n:05}', {n})" for n in range(5000)]
    columns = "a INT NOT NULL, b VARCHAR(9) NOT NULL, n INT, PRIMARY KEY (a, b)"
    name = made(server, "t", columns, rows)
    server.run([f"ANALYZE {'TABLE ' * (kind != 'postgresql')}k.t"])
    database = server.open()
    try:
        table = database.describe(name)
        part = KeyRange(("5", "k04000"), ("5", "k04100"))
        query = database.query(table, [table.column("n")], part)
        plan = database.ask(f"EXPLAIN {query}")
        if kind == "postgresql":
            assert "Index" in str(plan)
            assert "Seq Scan" not in str(plan)
        else:
            text = str(plan)
            assert "'range'" in text or "index range scan" in text.lower(), text
        assert len(database.ask(query)) == len([n for n in range(4001, 4101) if n % 7 == 5])
    finally:
        database.close()


LAST = "9999-12-31 23:59:59.999999"


@pytest.mark.parametrize("kind", SERVERS)
@pytest.mark.parametrize(
    ("column", "first", "end"),
    [("day", "9999-12-31", "9999-12-31"), ("at", "9999-12-31 00:00:00.000000", LAST)],
)
def test_it_has_its_last_moment(
    servers: Mapping[str, Server], kind: str, column: str, first: str, end: str
) -> None:
    """No day comes behind it whose beginning could be the end."""
    server = servers[kind]
    time = "timestamp" if kind == "postgresql" else "datetime(6)"
    schema = "SCHEMA" if kind == "postgresql" else "DATABASE"
    server.run([
        f"CREATE {schema} last_{column}",
        f"CREATE TABLE last_{column}.t (id int PRIMARY KEY, day date, at {time})",
        f"INSERT INTO last_{column}.t VALUES (1, '9999-12-30', '9999-12-30 23:59:59.999999'), "
        f"(2, '9999-12-31', '9999-12-31 00:00:00'), (3, '9999-12-31', '{LAST}')",
    ])  # fmt: skip
    database = server.open()
    try:
        table = database.describe(TableName(f"last_{column}", "t"))
        where = database.between(table.column(column), first, end, "<=")
        sql = f"SELECT id FROM {database.table_sql(table)} WHERE {where} ORDER BY id"
        assert [int(str(row[0])) for row in database.ask(sql)] == [2, 3]
    finally:
        database.close()
