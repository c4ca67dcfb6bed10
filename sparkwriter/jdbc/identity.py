"""Detects that a table was dropped and made again by somebody else: its marks are of other rows.

A table's identity is PostgreSQL's oid, or in MySQL and MariaDB its time of creation, which an
ALTER TABLE changes, too. It counts beside the ledger's own: a database that was copied as a whole
has other identities, and its marks are still those of its rows. Pure.
"""

from __future__ import annotations

from dataclasses import replace

from sparkwriter.jdbc.tables import DbTable
from sparkwriter.ledgered.made import Made
from sparkwriter.ledgered.operations import Entry, Shows


def identified(entry: Entry, ledger: str, table: DbTable | None) -> Entry:
    """The entry of a target with its table's identity; without a table it tells of none.

    ``ledger``: the identity of the ledger's table.
    """
    if not isinstance(entry, Shows) or entry.made is None:
        return entry
    identity = "" if table is None or not table.identity else f"{ledger}/{table.identity}"
    return replace(entry, made=replace(entry.made, identity=identity))


def is_another(made: Made, ledger: str, table: DbTable) -> bool:
    """Whether the table is not the one that the ledger tells of, or was altered since."""
    of_ledger, known, identity = made.identity.partition("/")
    return bool(known) and of_ledger == ledger and identity != table.identity
