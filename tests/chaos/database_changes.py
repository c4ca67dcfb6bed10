"""Somebody changes a table, its ledger's row or the room there is, beneath a running daemon.

It stops and names the command that puts it right, and so does the next start; after the command all
is as it should be.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from tests.chaos.databases import USER, DatabaseRig
from tests.chaos.lab import Outcome, lab
from tests.chaos.rolled_back import TABLE, put_right
from tests.sparkwriter.small_disk import fill, small_disk

LEDGER = "binlogd.__binlogd_targets"


def _changed(rig: DatabaseRig, fault: str, way: str, *statements: str) -> Outcome:
    """``statements``: what somebody does, ``{table}`` is the table and ``{row}`` where it is."""
    session = rig.server.connect()
    words = {"table": f"{rig.db}.{TABLE}", "row": f"namespace = '{rig.db}' AND name = '{TABLE}'"}
    try:
        with lab(rig, fault) as made:
            # MySQL tells a table's age in seconds: in the one in which it was made nobody can tell
            # another table from it.
            made.wait_for("written", 100)
            made.patient.hold()
            for statement in statements:
                session.run(statement.format(**words))
            made.wait_for_death()
            assert TABLE in made.patient.said(), made.patient.said()
            made.patient.resume(held=True)
            made.wait_for_death(2)
            began = time.monotonic()
            put_right(made, way)
            made.patient.resume()
            recovered = made.wait_for("written")
            made.settle()
            return made.outcome(recovered - began)
    finally:
        session.close()


def column_dropped(rig: DatabaseRig) -> Outcome:
    """A column of the source's is gone."""
    statement = "ALTER TABLE {table} DROP COLUMN qty"
    return _changed(rig, "a column dropped, rebuild", "rebuild", statement)


def column_narrowed(rig: DatabaseRig) -> Outcome:
    """A column takes less than the source's: texts are padded there."""
    change = (
        "ALTER COLUMN name TYPE char(200)" if rig.server.is_postgres else "MODIFY name char(200)"
    )
    statement = "ALTER TABLE {table} " + change
    return _changed(rig, "a column made narrower, rebuild", "rebuild", statement)


def table_dropped(rig: DatabaseRig) -> Outcome:
    """The table is gone."""
    return _changed(rig, "a table dropped, reset", "reset", "DROP TABLE {table}")


def table_made_again(rig: DatabaseRig) -> Outcome:
    """The table is there, as it was made at first: without its rows."""
    first, to = "CREATE TABLE {table}_like LIKE {table}", "{table}"
    if rig.server.is_postgres:
        first, to = "CREATE TABLE {table}_like (LIKE {table} INCLUDING ALL)", TABLE
    own = [f"SET ROLE {USER}"] if rig.server.is_postgres else []
    rename = f"ALTER TABLE {{table}}_like RENAME TO {to}"
    statements = (*own, first, "DROP TABLE {table}", rename)
    return _changed(rig, "a table dropped and recreated, reset", "reset", *statements)


def marks_forward(rig: DatabaseRig) -> Outcome:
    """By hand, to pass over changes."""
    to = f'{{{{"chaos-{rig.db}:0": 100000}}}}'
    statement = f"UPDATE {LEDGER} SET marks = '{to}' WHERE {{row}}"
    return _changed(rig, "marks set forward, rebuild", "rebuild", statement)


def ledger_row_deleted(rig: DatabaseRig) -> Outcome:
    """Nothing is known of the table any more."""
    statement = f"DELETE FROM {LEDGER} WHERE {{row}}"
    return _changed(rig, "a ledger row deleted, reset", "reset", statement)


def full(rig: DatabaseRig) -> Outcome:
    """The disk of the tables has no room for a while."""
    fault = "database disk full"
    with (
        small_disk(rig.server, rig.db, "32m") as disk,
        lab(rig, fault) as made,
    ):
        made.wait_for("written", 5)
        ballast = fill(disk)
        made.wait_for("sink_unavailable", 3)
        ballast.unlink()
        if not rig.server.program.program.runs:  # MariaDB may end of it
            rig.server.program.start()
        ended = time.monotonic()
        recovered = made.wait_for("written", 4)
        made.settle()
        return made.outcome(max(0.0, recovered - ended))


CHANGES: dict[str, Callable[[DatabaseRig], Outcome]] = {
    "database disk full": full,
    "a column dropped, rebuild": column_dropped,
    "a column made narrower, rebuild": column_narrowed,
    "a table dropped, reset": table_dropped,
    "a table dropped and recreated, reset": table_made_again,
    "marks set forward, rebuild": marks_forward,
    "a ledger row deleted, reset": ledger_row_deleted,
}
