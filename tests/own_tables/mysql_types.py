"""Every type that a column of MySQL or MariaDB can have, after their manuals. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

_WHOLE = ("TINYINT", "SMALLINT", "MEDIUMINT", "INT", "BIGINT")
_POINTS = (
    "DECIMAL", "DECIMAL(10,2)", "DECIMAL(10,3)", "DECIMAL(20,0)", "DECIMAL(38,0)",
    "DECIMAL(38,10)", "DECIMAL(38,30)", "DECIMAL(40,10)", "DECIMAL(65,0)", "FLOAT", "FLOAT(20)",
    "FLOAT(30)", "FLOAT(7,4)", "DOUBLE", "DOUBLE(10,3)",
)  # fmt: skip
_SPATIAL = (
    "GEOMETRY", "POINT", "LINESTRING", "POLYGON", "MULTIPOINT", "MULTILINESTRING", "MULTIPOLYGON",
    "GEOMETRYCOLLECTION",
)  # fmt: skip

TYPES = (
    *(f"{one}{end}" for one in _WHOLE for end in ("", " UNSIGNED", " ZEROFILL", "(4)")),
    *(f"{one}{end}" for one in _POINTS for end in ("", " UNSIGNED", " ZEROFILL")),
    "BOOLEAN", "TINYINT(1)", "INT1", "INT2", "INT3", "INT4", "INT8", "MIDDLEINT", "FLOAT4",
    "FLOAT8", "REAL", "DOUBLE PRECISION", "NUMERIC(12,4)", "FIXED(9,1)", "BIT", "BIT(1)", "BIT(9)",
    "BIT(64)", "DATE", "YEAR", "YEAR(4)",
    *(f"{one}{digits}" for one in ("TIME", "DATETIME", "TIMESTAMP")
      for digits in ("", "(0)", "(1)", "(3)", "(5)", "(6)")),
    "CHAR", "CHAR(1)", "CHAR(9)", "NCHAR(9)", "VARCHAR(3)", "VARCHAR(40)", "VARCHAR(2000)",
    "NATIONAL VARCHAR(40)", "CHARACTER VARYING(40)", "TINYTEXT", "TEXT", "TEXT(70000)",
    "MEDIUMTEXT", "LONGTEXT", "LONG", "LONG VARBINARY", "BINARY", "BINARY(9)", "VARBINARY(3)",
    "VARBINARY(40)", "TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB", "JSON",
    "ENUM('a')", "ENUM('sad','ok','it''s','','two words','ü')", r"ENUM('a\\b','tab	')",
    "SET('a')", "SET('sad','ok','it''s','ü')",
    *_SPATIAL,
)  # fmt: skip

ONLY = {
    "mariadb": (
        "INET4", "INET6", "UUID", "VARCHAR(40) COMPRESSED", "TEXT COMPRESSED", "BLOB COMPRESSED",
        "TEXT WITHOUT SYSTEM VERSIONING",
    ),
    "mysql": ("VECTOR(3)", "VECTOR", "GEOMCOLLECTION"),
}  # fmt: skip
"""What one of the two has alone. A server that lacks one of them says so."""

CHARACTER_SETS = (
    "latin1", "latin2", "ascii", "binary", "cp1250", "cp1251", "cp932", "eucjpms", "gbk", "big5",
    "euckr", "koi8r", "sjis", "ujis", "tis620", "ucs2", "utf16", "utf16le", "utf32", "utf8mb3",
    "utf8mb4",
)  # fmt: skip
COLLATIONS = (
    "utf8mb4_bin", "utf8mb4_general_ci", "utf8mb4_unicode_ci", "utf8mb3_bin", "latin1_bin",
    "latin1_swedish_ci", "utf8mb4_0900_bin", "utf8mb4_0900_as_cs", "utf8mb4_nopad_bin",
    "utf8mb3_nopad_bin", "latin1_nopad_bin", "ascii_nopad_bin",
)  # fmt: skip
IS_TEXT = ("CHAR", "TEXT", "ENUM", "SET", "NCHAR", "LONG")

COLUMN_ATTRIBUTES = (
    "NOT NULL",
    "NULL",
    "DEFAULT NULL",
    "NOT NULL AUTO_INCREMENT UNIQUE",
    "NULL DEFAULT CURRENT_TIMESTAMP(6)",
    "NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6)",
    "NULL ON UPDATE CURRENT_TIMESTAMP(6)",
    "INVISIBLE",
    "COMMENT 'a comment, with ''quotes'''",
    "CHECK (1 = 1)",
    "GENERATED ALWAYS AS (NULL) VIRTUAL",
    "GENERATED ALWAYS AS (NULL) STORED",
)
"""What a column may have beside its type. Not each goes with each type."""

EXTRA_COLUMNS = (
    "mine int NOT NULL DEFAULT 7",
    "mine timestamp(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6)",
    "mine timestamp",
    "mine int NOT NULL",
    "mine bigint NOT NULL AUTO_INCREMENT UNIQUE",
    "mine json",
    "mine varchar(20) GENERATED ALWAYS AS ('x') STORED",
    "mine varchar(20) GENERATED ALWAYS AS ('x') VIRTUAL",
    "mine int INVISIBLE DEFAULT 7",
)

TABLE_OPTIONS = (
    "ENGINE=InnoDB ROW_FORMAT=COMPRESSED", "ENGINE=InnoDB ROW_FORMAT=COMPACT", "ENGINE=MyISAM",
    "ENGINE=MEMORY", "ENGINE=Aria", "ENGINE=CSV", "COMMENT='of mine'", "AUTO_INCREMENT=100",
    "DEFAULT CHARSET=latin1", "WITH SYSTEM VERSIONING",
    "ENGINE=InnoDB PARTITION BY KEY () PARTITIONS 3",
)  # fmt: skip

TRIGGERS = (
    "BEFORE INSERT ON {table} FOR EACH ROW SET @seen = 1",
    "BEFORE UPDATE ON {table} FOR EACH ROW SET @seen = 1",
    "BEFORE DELETE ON {table} FOR EACH ROW SET @seen = 1",
    "AFTER INSERT ON {table} FOR EACH ROW SET @seen = 1",
    "AFTER DELETE ON {table} FOR EACH ROW SET @seen = 1",
)


def after_table(rng: Random, schema: str, table: str) -> Sequence[str]:
    """Statements about the whole table that a user may have run: most tables have none."""
    if rng.random() < 0.8:
        return ()
    name = f"{schema}.{table}"
    return (f"CREATE TRIGGER {name}_t {rng.choice(TRIGGERS).format(table=name)}",)
