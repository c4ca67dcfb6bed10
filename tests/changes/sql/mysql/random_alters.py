"""Random ALTER TABLE statements, spelled as hardly anybody spells them. Pure."""

from __future__ import annotations

import re
from random import Random

NAMES = (
    "c", "`c d`", "n\u00fc", "2fa", "`se``lect`", "$x", "_y", "\u3000x", "x\u00a0", "`Index`",
    "`1`", "\u0131ndex",
    "\uff08x\uff09", "status", "`key`", "date", "C", "`a,b`", "`a)b`", "`--`", "`/*`",
    "shop.users.z", "users . z", ".z",
)  # fmt: skip
OLD = ("name", "NOTE", "`qty`", "users.price", "`made`", "Kind", "shop.users.data", "`Qty`")

WHOLE = (
    "INT", "INT(11)", "INTEGER UNSIGNED", "int unsigned zerofill", "TINYINT(1)", "BOOL",
    "Boolean", "SMALLINT", "MEDIUMINT",
    "MIDDLEINT", "BIGINT SIGNED", "BIGINT UNSIGNED", "INT1", "INT2", "INT3", "INT4", "INT8",
    "BIT(9)", "BIT",
)  # fmt: skip
EXACT = (
    "DECIMAL",
    "DEC(5,1)",
    "FIXED(7)",
    "NUMERIC( 8 , 3 )",
    "DECIMAL(38,10)",
    "DECIMAL(9,9)",
    "decimal(10,2) UNSIGNED",
)
FLOATS = (
    "FLOAT",
    "FLOAT(7,3)",
    "FLOAT(30)",
    "FLOAT(10)",
    "DOUBLE",
    "DOUBLE PRECISION",
    "REAL",
    "FLOAT8",
    "DOUBLE(12,4)",
)
TEXTS = (
    "CHAR", "CHAR(5)", "CHARACTER(5)", "NATIONAL CHAR(5)", "NATIONAL CHARACTER(5)", "NCHAR(5)",
    "NCHAR VARYING(5)", "VARCHAR(9)", "VARCHARACTER(9)", "CHAR VARYING(9)",
    "CHARACTER VARYING(9)", "NATIONAL VARCHAR(9)",
    "NVARCHAR(9)", "TEXT", "TEXT(100)", "TINYTEXT", "LONGTEXT", "LONG", "LONG VARCHAR",
    "VARCHAR(9) BINARY",
    "CHAR(5) ASCII", "CHAR(5) CHARACTER SET latin1", "TEXT CHARACTER SET utf8mb4",
    "VARCHAR(9) COLLATE utf8mb4_bin", "CHAR CHARSET utf8",
    "JSON",
)  # fmt: skip
BYTES = (
    "BINARY(3)", "VARBINARY(5)", "BLOB", "TINYBLOB", "BLOB(10)", "LONG VARBINARY", "CHAR BYTE",
    "VARCHAR(5) BYTE", "CHAR(3) CHARACTER SET binary",
    "VARCHAR(5) CHARACTER SET BINARY", "TEXT CHARSET binary",
)  # fmt: skip
TIMES = (
    "DATE",
    "DATETIME",
    "DATETIME(3)",
    "TIME",
    "TIME(2)",
    "YEAR",
    "YEAR(4)",
    "TIMESTAMP NULL",
    "TIMESTAMP(6) NULL",
)
LABELS = (
    "ENUM('x','y,z','it''s')",
    "enum( 'A' , 'b ' )",
    "SET('p','q')",
    "SET(\"p\",'Q')",
    "ENUM('x\\'y','\u00fc')",
    "ENUM(n'x','y')",
)
OTHERS = ("UUID", "INET6", "INET4", "POINT", "GEOMETRY")

VALUES = (
    "5", "-5", "+5", "'5'", "' 5'", "'5 '", "1.50", "-.5", ".5", "1e2", "1E+2", "'1e2'", "007",
    "'007'", "1.", "b'101'", "0b11", "0x41", "x'41'", "X'0A'",
    "TRUE", "false", "NULL", "'a '", "'A'", "' a'", "n'x'", "N'x '", "_utf8mb4'\u00e9'",
    "_latin1'x'", '"dq"', "'it''s'", "'a\\nb'", "'\\%'", "'\\0'", "''", "(7)",
    "('x')", "(1+1)", "(-3)", "('a ')", "CURRENT_TIMESTAMP", "NOW()", "'2024-01-02'",
    "'2024-01-02 03:04:05.678'", "'2024-01-02 03:04:05'", "20240102",
    "'20240102'", "'0000-00-00'", "'0000-00-00 00:00:00'", "'24:00:00'", "'-10:11:12'", "'10:11'",
    "2024", "'2024'", "24", "0", "'0'", "-0", "'y,z'", "'p,q'", "'q,p'", "'P'", "'x'", "'X'",
    "'b'", "'\uff11'", "'1_0'", "'nan'", "99999999999", "-1", "0.1", "1.25", "12.345", "'\u00fc'",
    "'\U0001f600'", "18446744073709551615", "UUID()", "'::1'", "'10.0.0.1'",
)  # fmt: skip
LAST = (
    "COMMENT 'DROP COLUMN id'", "COMMENT ', ADD zz int'", "INVISIBLE", "CHECK (1)", "FIRST",
    "AFTER name", "AFTER `note`",
    "COLUMN_FORMAT DYNAMIC", "UNIQUE", "COMMENT ''",
)  # fmt: skip
BETWEEN = (
    " ", " ", " ", " ", " ", "\n", "\t", "  ", "\r\n", " /* x */ ", "/**/", " -- y, DROP id\n",
    " # ' z\n", "\v", "\f", "/*!*/", " /*!50003*/ ", "/*/ ' */",
)  # fmt: skip


def statement(rng: Random) -> str:
    """One; many are refused by the server."""
    kind = rng.random()
    if kind < 0.06:
        where = rng.choice(("archive.moved", "moved", "`mo ved`", "\u00a0moved"))
        text = rng.choice(
            (f"RENAME TABLE users TO {where}", f"ALTER TABLE users RENAME TO {where}")
        )
    elif kind < 0.1:
        text = rng.choice(
            (
                "TRUNCATE TABLE users",
                "TRUNCATE users",
                "DROP TABLE users",
                "DROP TABLES IF EXISTS users , orders",
            )
        )
    else:
        table = rng.choice(
            ("users", "`users`", "shop.users", "shop . `users`", ".users", "`shop`.users")
        )
        clauses = [_clause(rng) for _ in range(rng.choice((1, 1, 1, 1, 2, 2, 3)))]
        text = f"ALTER TABLE {table} {', '.join(clauses)}"
    return _spelled(rng, text)


def _clause(rng: Random) -> str:
    kind = rng.random()
    if kind < 0.5:
        return f"ADD {rng.choice(('', 'COLUMN '))}{_definition(rng, rng.choice(NAMES))}"
    if kind < 0.6:
        listed = [
            _definition(rng, name, last=False) for name in rng.sample(NAMES, rng.choice((1, 2)))
        ]
        return f"ADD {rng.choice(('', 'COLUMN '))}({', '.join(listed)})"
    if kind < 0.7:
        return f"MODIFY {rng.choice(('', 'COLUMN '))}{_definition(rng, rng.choice(OLD))}"
    if kind < 0.8:
        new = rng.choice(NAMES + OLD)
        return f"CHANGE {rng.choice(('', 'COLUMN '))}{rng.choice(OLD)} {_definition(rng, new)}"
    if kind < 0.88:
        return f"DROP {rng.choice(('', 'COLUMN '))}{rng.choice(OLD)}"
    if kind < 0.94:
        return f"RENAME COLUMN {rng.choice(OLD)} TO {rng.choice(NAMES)}"
    return rng.choice((
        "ADD INDEX (qty)", "ENGINE=InnoDB", "COMMENT 'x, DROP name'", "ALTER qty SET DEFAULT 9",
        "DEFAULT CHARSET latin1",
        "DROP INDEX by_name", "ADD KEY `drop` (name(3))", "FORCE", "ALGORITHM=COPY",
        "ALTER COLUMN users.qty DROP DEFAULT",
    ))  # fmt: skip


def _definition(rng: Random, name: str, *, last: bool = True) -> str:
    type_ = rng.choice(
        rng.choice((WHOLE, EXACT, FLOATS, TEXTS, TEXTS, BYTES, TIMES, LABELS, OTHERS))
    )
    parts = [name, type_]
    if rng.random() < 0.4:
        parts.append(rng.choice(("NULL", "NOT NULL", "NOT NULL")))
    if rng.random() < 0.7:
        parts.append(f"DEFAULT {rng.choice(VALUES)}")
    if last and rng.random() < 0.3:
        parts.append(rng.choice(LAST))
    return " ".join(parts)


def _spelled(rng: Random, text: str) -> str:
    """Other blanks and comments between words outside quotes; letters in another case."""
    parts = re.split(r"""('(?:[^'\\]|\\.|'')*'|"[^"]*"|`(?:[^`]|``)*`)""", text)
    for at in range(0, len(parts), 2):
        if rng.random() < 0.4:
            parts[at] = re.sub(" ", lambda _: rng.choice(BETWEEN), parts[at])
        if rng.random() < 0.2:
            parts[at] = parts[at].replace(",", " /* , */ ,").replace("(", "( /* ( */ ")
    return "".join(parts)
