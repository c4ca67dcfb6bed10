"""Random tables of a user's own, for columns that a source sends: whatever a server can have.

``own_table`` gives the statements that make one. Each column is, most times, of a type that ought
to hold what is sent, and else of any type of the server's catalogue; it has random attributes,
collations and defaults. A server may refuse a combination: ``made`` tries until one is taken. Pure,
but for ``made``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal

from tests.own_tables import mysql_types, postgres_types

Kind = Literal["postgres", "mariadb", "mysql"]

ATTEMPTS = 60
"""So many tables are tried until the server takes one."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A column that a source sends. ``type`` is the lake's word: ``long``, ``decimal(10, 2)``."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class OwnTable:
    """A table as a user would have made it. ``before`` makes its types."""

    before: tuple[str, ...]
    create: str
    after: tuple[str, ...]

    @property
    def statements(self) -> tuple[str, ...]:
        """All, in order."""
        return (*self.before, self.create, *self.after)


FITTING: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "postgres": {
        "boolean": ("boolean",), "int": ("integer", "smallint", "bigint"), "long": ("bigint",),
        "float": ("real", "double precision"), "double": ("double precision",),
        "string": ("text", "varchar", "varchar(40)", "json", "mood"), "binary": ("bytea",),
        "date": ("date",), "timestamp": ("timestamp", "timestamp(6)"),
        "timestamptz": ("timestamptz", "timestamptz(6)"),
    },
    "mysql": {
        "boolean": ("TINYINT(1)", "TINYINT"), "int": ("INT", "SMALLINT", "BIGINT", "INT UNSIGNED"),
        "long": ("BIGINT", "BIGINT UNSIGNED"), "float": ("FLOAT", "DOUBLE"), "double": ("DOUBLE",),
        "string": ("LONGTEXT", "TEXT", "VARCHAR(40)", "ENUM('sad','ok','it''s','ü')"),
        "binary": ("LONGBLOB", "BLOB", "VARBINARY(40)"), "date": ("DATE",),
        "timestamp": ("DATETIME(6)",), "timestamptz": ("TIMESTAMP(6)", "DATETIME(6)"),
    },
}  # fmt: skip


def own_table(
    rng: Random,
    kind: Kind,
    schema: str,
    table: str,
    sent: Sequence[Sent],
    key: Sequence[str],
    catalogue: Sequence[str],
    odd: float = 0.15,
) -> OwnTable:
    """A table for these columns, with this primary key.

    ``catalogue``: the server's types (``catalogue_of``). ``odd``: how often a column is of any of
    them, or has an attribute. ``schema`` and ``table`` need no quotes.
    """
    one = _Postgres if kind == "postgres" else _MySql
    return one(rng, kind, schema, table, catalogue, odd).table(sent, key)


def catalogue_of(kind: Kind, rows: Callable[[str], Sequence[tuple[object, ...]]]) -> list[str]:
    """All types that a column can have there. ``rows`` asks the server."""
    if kind == "postgres":
        found = [str(name) for (name,) in rows(postgres_types.SERVER_TYPES)]
        return [*found, *postgres_types.WITH_DIGITS, *postgres_types.MADE]
    return [*mysql_types.TYPES, *mysql_types.ONLY[kind]]


def made(
    make: Callable[[], OwnTable], run: Callable[[str], object], refused: type[Exception]
) -> OwnTable:
    """The first of the tables that the server takes. ``run`` raises ``refused`` for others, and
    what it made of them is to be gone then."""
    for _ in range(ATTEMPTS):
        own = make()
        try:
            for statement in own.statements:
                run(statement)
        except refused:
            continue
        return own
    raise AssertionError(f"the server took none of {ATTEMPTS} tables")


class _Tables:
    """What both kinds of servers have in common."""

    def __init__(
        self,
        rng: Random,
        kind: Kind,
        schema: str,
        table: str,
        catalogue: Sequence[str],
        odd: float,
    ) -> None:
        self.rng, self.kind, self.odd = rng, kind, odd
        self.schema, self.name, self.catalogue = schema, table, catalogue
        self.before: list[str] = []

    def is_odd(self) -> bool:
        return self.rng.random() < self.odd

    def type_of(self, sent: Sent) -> str:
        if self.is_odd():
            return self.rng.choice(self.catalogue)
        fitting = FITTING["postgres" if self.kind == "postgres" else "mysql"]
        if sent.type.startswith("decimal"):
            return sent.type.replace("decimal", "numeric").replace(", ", ",")
        return self.rng.choice(fitting[sent.type])


class _Postgres(_Tables):
    def table(self, sent: Sequence[Sent], key: Sequence[str]) -> OwnTable:
        columns = [self._column(one) for one in sent]
        if self.is_odd():
            columns.append(self.rng.choice(postgres_types.EXTRA_COLUMNS))
        if key:
            columns.append(f"PRIMARY KEY ({', '.join(key)})")
        end = " PARTITION BY HASH (" + key[0] + ")" if key and self.rng.random() < 0.05 else ""
        name = f"{self.schema}.{self.name}"
        whole = "FOR VALUES WITH (MODULUS 1, REMAINDER 0)"
        parts = [f"CREATE TABLE {name}_p PARTITION OF {name} {whole}"]
        after = (*(parts if end else ()), *self._after())
        return OwnTable(
            tuple(self.before), f"CREATE TABLE {name} ({', '.join(columns)}){end}", after
        )

    def _after(self) -> Sequence[str]:
        return postgres_types.after_table(self.rng, self.schema, self.name) if self.is_odd() else ()

    def _column(self, one: Sent) -> str:
        type_ = self.type_of(one)
        if type_ in postgres_types.MADE:
            made_type = f"{self.schema}.{self.name}_{one.name}_t"
            if type_.startswith('"'):
                made_type = f"{self.schema}.{type_}"
                self.before.append(f"DROP TYPE IF EXISTS {made_type} CASCADE")
            self.before.append(postgres_types.MADE[type_].format(name=made_type))
            type_ = made_type
        text = f"{one.name} {type_}"
        if self.is_odd() and ("char" in type_ or type_ == "text"):
            self.before.append(postgres_types.MAKE_COLLATION.format(schema=self.schema))
            collation = self.rng.choice(list(postgres_types.COLLATIONS.values()))
            text += " " + collation.format(schema=self.schema)
        if self.is_odd():
            text += " " + self.rng.choice(postgres_types.COLUMN_ATTRIBUTES).format(column=one.name)
        return text


class _MySql(_Tables):
    def table(self, sent: Sequence[Sent], key: Sequence[str]) -> OwnTable:
        columns = [self._column(one, one.name in key) for one in sent]
        if self.is_odd():
            columns.append(self.rng.choice(mysql_types.EXTRA_COLUMNS))
        if key:
            columns.append(f"PRIMARY KEY ({', '.join(key)})")
        options = self.rng.choice(mysql_types.TABLE_OPTIONS) if self.is_odd() else ""
        create = f"CREATE TABLE {self.schema}.{self.name} ({', '.join(columns)}) {options}"
        after = mysql_types.after_table(self.rng, self.schema, self.name) if self.is_odd() else ()
        return OwnTable((), create, tuple(after))

    def _column(self, one: Sent, in_key: bool) -> str:
        type_ = self.type_of(one)
        if in_key and type_ in ("LONGTEXT", "TEXT", "LONGBLOB", "BLOB"):
            type_ = "VARCHAR(200)" if "TEXT" in type_ else "VARBINARY(200)"
        text = f"{one.name} {type_}"
        is_text = any(word in type_ for word in mysql_types.IS_TEXT) and "BINARY" not in type_
        if is_text and self.is_odd():
            text += f" CHARACTER SET {self.rng.choice(mysql_types.CHARACTER_SETS)}"
        elif is_text and in_key and not self.is_odd():
            name = "nopad" if self.kind == "mariadb" else "0900"
            text += f" CHARACTER SET utf8mb4 COLLATE utf8mb4_{name}_bin"
        elif is_text and (self.is_odd() or in_key):
            text += f" COLLATE {self.rng.choice(mysql_types.COLLATIONS)}"
        if self.is_odd():
            text += " " + self.rng.choice(mysql_types.COLUMN_ATTRIBUTES)
        return text
