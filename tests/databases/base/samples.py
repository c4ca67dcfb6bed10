"""Columns of every type with edges and odd values of each: for MySQL, MariaDB and PostgreSQL. Pure.

A table has a row for each place in the lists of literals, and one of nulls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sample:
    """A column's type, literals of it, and whether it may be null."""

    sql: str
    literals: tuple[str, ...]
    nullable: bool = True


TEXTS = (
    "''", "' '", "'a'", "'it''s'", "'\"'", "'数据🙂'", "'NULL'", "'trailing  '", "'{a}${b}%s'",
    "'tab\tnew\nline'", "'ß ü Ω'",
)  # fmt: skip


def _s(sql: str, *literals: str, nullable: bool = True) -> Sample:
    return Sample(sql, literals, nullable)


COMPUTED = "DEFAULT"
"""The literal of a column that the database computes."""

_DOUBLES = (
    "0", "0.1", "-1.5", "1.7976931348623157e308", "5e-324", "2.2250738585072014e-308", "1e23",
    "123456789.125", "-2.5e-7", "9007199254740993", "1e15", "1e16", "-0e0", "0.3",
    "3.141592653589793", "2e-3", "1e22", "4.35", "1.1e-10", "5.684341886080802e-14",
)  # fmt: skip

_DATES = ("'1000-01-01'", "'2024-02-29'", "'9999-12-31'", "'1600-10-10'")
"""Debezium takes the years of MySQL below 100 for those of a century, and Maxwell moves days before
1582-10-15: PostgreSQL has those here."""

MYSQL: tuple[Sample, ...] = (
    _s("TINYINT", "-128", "127", "0"), _s("TINYINT(1)", "0", "1"),
    _s("TINYINT UNSIGNED", "255", "0"), _s("SMALLINT", "-32768", "32767"),
    _s("SMALLINT UNSIGNED", "65535"), _s("MEDIUMINT", "-8388608", "8388607"),
    _s("MEDIUMINT UNSIGNED", "16777215"), _s("INT", "-2147483648", "2147483647"),
    _s("INT UNSIGNED", "4294967295", "0"), _s("INT(8) UNSIGNED ZEROFILL", "42", "0"),
    _s("BIGINT", "-9223372036854775808", "9223372036854775807"),
    _s("BIGINT UNSIGNED", "9223372036854775807", "0"),
    _s("DECIMAL(10,2)", "-99999999.99", "0", "0.10"), _s("DECIMAL(10,0)", "-5", "1234567890"),
    _s("DECIMAL(38,10)", "9999999999999999999999999999.9999999999", "-0.0000000001", "0"),
    _s("DECIMAL(65,30)", "12345678901234567890123456789012345.1", f"-0.{'0' * 29}1"),
    _s("DECIMAL(6,2) UNSIGNED ZEROFILL", "1.5", "0"),
    _s("FLOAT", "0", "0.1", "-1.5e10", "3.25e-7", "16777217", "3.4028235e38", "1e-45"),
    _s("FLOAT(7,3)", "1.1", "1234.567"), _s("DOUBLE", *_DOUBLES),
    _s("DOUBLE(10,2)", "1.1", "0.126"),
    _s("BIT(1)", "b'0'", "b'1'"), _s("BIT(9)", "b'0'", "b'111111111'", "b'101'"),
    _s("BIT(64)", "b'0'", f"b'{'1' * 64}'", f"b'1{'0' * 63}'"),
    _s("CHAR(12)", *(text for text in TEXTS)), _s("VARCHAR(60)", *TEXTS),
    _s("VARCHAR(60) CHARACTER SET latin1", "''", "'ü€'", "'a '"),
    _s("VARCHAR(60) CHARACTER SET utf16", "'ü🙂'"),
    _s("VARCHAR(60) CHARACTER SET gbk", "'数据'"), _s("TEXT", *TEXTS), _s("LONGTEXT", "'x'", "''"),
    _s("BINARY(4)", "x'00000000'", "x'01000000'", "x'10000000'", "x'00ff00aa'", "x'a0000000'"),
    _s("VARBINARY(16)", "x''", "x'0100'", "x'00'", "x'ff00ee'"), _s("BLOB", "x''", "x'0001fe00'"),
    _s("DATE", *_DATES, "'0000-00-00'", "'2024-00-10'", "'2024-01-00'"),
    _s("DATE", "'2024-01-02'", "'0000-00-00'", nullable=False),
    _s("DATETIME", "'1000-01-01 00:00:00'", "'9999-12-31 23:59:59'", "'0000-00-00 00:00:00'"),
    _s("DATETIME", "'2024-01-02 03:04:05'", "'0000-00-00 00:00:00'", nullable=False),
    _s("DATETIME(3)", "'2024-01-02 03:04:05.120'", "'1969-12-31 23:59:59.999'"),
    _s("DATETIME(6)", "'2024-01-02 03:04:05.000001'", "'1600-10-10 00:00:00.5'"),
    _s("TIMESTAMP NULL", "'1970-01-02 00:00:01'", "'2038-01-19 03:14:07'", "'0000-00-00 00:00:00'"),
    _s("TIMESTAMP(6) NULL", "'2024-03-31 01:30:00.000001'", "'2024-10-27 00:30:00'"),
    _s("TIME", "'00:00:00'", "'838:59:58'", "'-838:59:58'", "'-00:00:01'", "'12:34:56'"),
    _s("TIME(3)", "'01:02:03.5'", "'-00:00:00.001'"),
    _s("TIME(6)", "'01:02:03.000001'", "'-12:00:00.5'"),
    _s("YEAR", "1901", "2155", "1970"),
    _s("ENUM('a','b','x y')", "'a'", "'x y'", "''"), _s("ENUM('it''s','b')", "'it''s'"),
    _s("SET('x','y','z')", "''", "'x'", "'x,z'", "'x,y,z'"),
    _s("GEOMETRY", "ST_GeomFromText('POINT(1 2)')", "ST_GeomFromText('LINESTRING(0 0,1.5 -2)')"),
    _s("POINT", "ST_GeomFromText('POINT(-1.5 2.25)', 4326)"),
    _s("INT AS (id + 1) STORED", COMPUTED), _s("INT AS (id * 2) VIRTUAL", COMPUTED),
)  # fmt: skip
"""Of both MySQL and MariaDB."""

MYSQL_JSON = (
    "'{}'", "'[]'", "'{\"a\": [1, null, true, \"ü\"], \"b c\": {\"d, e\": \"f: g, h\"}}'",
    "'\"a \\\\\\\\ \\\\\" , : b\"'", "'[1, -2, 1.5, 0]'", "'null'", "'\"\\\\n\\\\t\\\\u0001/\"'",
)  # fmt: skip
ONLY_MYSQL: tuple[Sample, ...] = (_s("JSON", *MYSQL_JSON),)
ONLY_MARIADB: tuple[Sample, ...] = (
    _s("JSON", "'{}'", '\'{"a":  [1, null, "ü"]}\'', "'[1.50]'", "'\"a \\\\\\\\ b\"'"),
    # Debezium 3.4 shifts one whose last byte is zero.
    _s("UUID", "'123e4567-e89b-12d3-a456-426655440001'"),
)

POSTGRESQL: tuple[Sample, ...] = (
    _s("smallint", "-32768", "32767"), _s("integer", "-2147483648", "2147483647"),
    _s("bigint", "-9223372036854775808", "9223372036854775807"),
    _s("numeric(10,2)", "-99999999.99", "0", "0.10", "'NaN'"),
    _s("numeric(38,10)", "9999999999999999999999999999.9999999999", "-0.0000000001"),
    _s("numeric(50,20)", "123456789012345678901234567890.12345", "0"),
    _s("numeric(5,-2)", "12300", "0"), _s("numeric(3,5)", "0.00123", "-0.00999"),
    _s("numeric", "0", "1.50", "-12345678901234567890.123456789", "1e20", "'NaN'", "0.000000100"),
    _s("money", "'0'", "'-12.34'", "'92233720368547758.07'"),
    _s("real", "0", "0.1", "-1.5e10", "3.25e-7", "16777217", "'NaN'", "'-Infinity'", "1e-45"),
    _s("double precision", *(f"{text}::float8" for text in _DOUBLES), "'NaN'", "'Infinity'"),
    _s("boolean", "true", "false"), _s("bit(1)", "B'0'", "B'1'"),
    _s("bit(9)", "B'000000000'", "B'100000001'"), _s("bit(63)", f"B'{'1' * 63}'"),
    _s("bit varying(12)", "B'1'", "B'0101'"),
    _s("char(12)", *TEXTS), _s("varchar(60)", *TEXTS), _s("text", *TEXTS),
    _s("bytea", "''", "'\\x0001fe00'"), _s("uuid", "'123e4567-e89b-12d3-a456-426655440000'"),
    _s("json", "'{}'", "'{\"a\":  [1, null, \"ü\"]}'"), _s("jsonb", "'{\"b\": 1.50, \"a\": null}'"),
    _s("date", "'0001-01-01'", "'9999-12-31'", "'1582-10-10'", "'infinity'", "'-infinity'"),
    _s("timestamp", "'2024-01-02 03:04:05.000001'", "'0001-01-01'", "'infinity'"),
    _s("timestamp", "'1582-10-10 01:00'"),
    _s("timestamp(3)", "'2024-01-02 03:04:05.12'", "'9999-12-31 23:59:59.999'"),
    _s("timestamptz", "'2024-03-31 01:30:00.5+05:30'", "'1970-01-01 00:00:00+00'", "'-infinity'"),
    _s("time", "'00:00:00'", "'23:59:59.999999'", "'12:00'"), _s("time(3)", "'01:02:03.5'"),
    _s("interval", "'0'", "'1 day 02:03:04.5'", "'-00:00:01'", "'1 year 2 mons -3 days'"),
    _s("inet", "'10.0.0.1/8'", "'10.0.0.1'", "'::1'"), _s("cidr", "'10.0.0.0/8'"),
    _s("macaddr", "'08:00:2b:01:02:03'"), _s("int4range", "'[1,5)'", "'empty'"),
    _s("point", "'(1.5,-2)'", "'(0,0)'"), _s("xml", "'<a b=\"c\">d</a>'"),
    _s("integer[]", "'{}'", "'{1,NULL,-3}'"), 
    _s("text[]", "'{}'", "'{a,NULL,\"b c\",\"\",\"\\\"q\\\"\"}'"),
    _s("bigint[]", "'{9223372036854775807}'"), _s("boolean[]", "'{t,f,NULL}'"),
    _s("numeric(6,2)[]", "'{1.50,0,NULL,-12.3}'"), _s("date[]", "'{2024-01-02,NULL}'"),
    _s("timestamp[]", "'{\"2024-01-02 03:04:05\",\"2024-01-02 03:04:05.12\"}'"),
    _s("uuid[]", "'{123e4567-e89b-12d3-a456-426655440000}'"),
    _s("mood", "'sad'", "'it''s'"), _s("citext", "'A b'"), _s("positive", "5"),
)  # fmt: skip
POSTGRESQL_TYPES = (
    "CREATE EXTENSION IF NOT EXISTS citext",
    "DROP TYPE IF EXISTS mood", "DROP DOMAIN IF EXISTS positive",
    "CREATE TYPE mood AS ENUM ('sad', 'it''s')",
    "CREATE DOMAIN positive AS integer CHECK (VALUE > 0)",
)  # fmt: skip


def create(samples: Sequence[Sample], table: str) -> str:
    """The table: ``id`` and a column of each sample, ``c0`` and so on."""
    columns = [
        f"c{place} {sample.sql}{'' if sample.nullable else ' NOT NULL'}"
        for place, sample in enumerate(samples)
    ]
    return f"CREATE TABLE {table} (id INT PRIMARY KEY, {', '.join(columns)})"


def inserts(samples: Sequence[Sample], table: str) -> list[str]:
    """Its rows, the last of nulls where they may be."""
    rows = max(len(sample.literals) for sample in samples)
    made = [
        [str(row), *(sample.literals[row % len(sample.literals)] for sample in samples)]
        for row in range(rows)
    ]
    empty = ("NULL" if s.nullable and s.literals != (COMPUTED,) else s.literals[0] for s in samples)
    made.append([str(rows), *empty])
    return [f"INSERT INTO {table} VALUES ({', '.join(row)})" for row in made]
