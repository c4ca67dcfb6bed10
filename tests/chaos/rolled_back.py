"""Somebody rolls a table of the lake back beneath a running daemon; the operator puts it right."""

from __future__ import annotations

import re
import time

from tests.chaos.lab import Lab, Outcome, lab
from tests.integration.rig import Rig

TABLE = "t0"
NOTICED_WITHIN_S = 10.0
"""A write that is under way at that moment brings the table back, as if nothing had been."""


COMMANDS = {
    # The log is compacted: one must say that no change went by that. Each has a key of its own.
    "reset": ("offsets reset", "--force", "--execute"),
    "rebuild": ("tables rebuild", "--force"),
}
"""What the message is to name, and the flags with which it is meant."""


def rolled_back(rig: Rig, way: str) -> Outcome:
    """The pipeline stops and says so, and so does the next start; after the command that it names
    all is as it should be."""
    with lab(rig, f"a table rolled back, {way}") as made:
        made.wait_for("written", 12)
        made.patient.hold()
        _roll_back(made)
        made.wait_for_death()
        said = made.patient.said()
        assert "rolled back" in said, said
        made.patient.resume(held=True)
        made.wait_for_death(2)
        began = time.monotonic()
        put_right(made, way)
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


def put_right(made: Lab, way: str) -> None:
    """What the message tells to do, while no daemon runs: of ``COMMANDS``."""
    command, *flags = COMMANDS[way]
    said = made.patient.said()
    told = re.search(f"`binlogd ({command} [^`]*)`", said)
    assert told is not None, said
    done = made.patient.run(*told.group(1).split(), *flags)
    assert done.returncode == 0, f"{told.group(1)}: {done.stdout}{done.stderr}"
