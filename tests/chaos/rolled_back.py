"""Somebody rolls a table of the lake back beneath a running daemon; the operator puts it right."""

from __future__ import annotations

import time

from tests.chaos.lab import Lab, Outcome, lab
from tests.integration.rig import Rig

TABLE = "t0"
NOTICED_WITHIN_S = 10.0
"""A write that is under way at that moment brings the table back, as if nothing had been."""


def rolled_back(rig: Rig, way: str) -> Outcome:
    """The pipeline stops and says so; after the command that it names, all is as it should be.

    ``way``: ``reset`` reads the table's log again, ``rebuild`` into a table made anew.
    """
    with lab(rig, f"a table rolled back, {way}") as made:
        made.wait_for("written", 12)
        made.patient.hold()
        _roll_back(made)
        made.wait_for_death()
        said = made.patient.said()
        assert "rolled back" in said, said
        began = time.monotonic()
        _put_right(made, way)
        made.patient.resume()
        recovered = made.wait_for("written")
        made.settle()
        return made.outcome(recovered - began)


def _roll_back(made: Lab) -> None:
    """To three publishes ago, until the daemon has seen it."""
    name = f"{made.rig.db}.{TABLE}"
    for _ in range(10):
        history = made.rig.spark.sql(
            f"SELECT snapshot_id FROM lake.{name}.history WHERE is_current_ancestor"
            " ORDER BY made_current_at"
        ).collect()
        if len(history) > 4:
            back = history[-4].snapshot_id
            made.rig.spark.sql(f"CALL lake.system.rollback_to_snapshot('{name}', {back})")
        try:
            made.logs["one"].wait_for("pipeline_failed", 1, NOTICED_WITHIN_S)
        except TimeoutError:
            continue
        return
    raise AssertionError("nobody noticed that the table was rolled back")


def _put_right(made: Lab, way: str) -> None:
    """The command that the message names, while no daemon runs."""
    target = f"lake.{made.rig.db}.{TABLE}"
    commands = {
        "reset": ("offsets", "reset", "--pipeline", "p", "--to", "earliest", "--table", target),
        "rebuild": ("tables", "rebuild", target),
    }
    done = made.patient.run(*commands[way], "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
