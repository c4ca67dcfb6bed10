"""What a load takes in of what the pipeline has recorded of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from daemon.operations.load import attempts
from daemon.operations.load.memory import Ending, Filled, LoadMemory, Step
from offsets.rebuild import Load, Rebuild
from offsets.snapshot import Snapshot
from tests.daemon.operations.load.test_kind import Control, job
from tests.daemon.operations.test_automatic_loads import P0

T, OTHER = "lake.s.t", "lake.s.other"


def filled(target: str) -> Filled:
    return Filled(("s", target), stage="filled", into=f"{target}__rebuild_1")


def test_an_end_that_is_recorded_is_not_looked_for_again(tmp_path: Path) -> None:
    """A crash after the edit, then the other table's load begins again, which asks for a later end
    of both: the first has taken its name meanwhile, and was not given up."""
    ended = Load("load-1", {P0: 5}, ends={P0: 9})
    control = Control(tmp_path)
    control.here = Snapshot("p", "g", rebuilds={T: Rebuild(filled(T).into, {}, load=ended)})
    ending = Ending([T], 0, 0, {}, ready=True, by_time=["binlog:0"])
    memory = LoadMemory({T: filled(T), OTHER: filled(OTHER)}, ending)
    unused: Any = None
    step = Step(job(), control, memory, unused, unused, unused, lambda: 0.0)  # type: ignore[arg-type]
    attempts.look(step)
    assert memory.targets[T].stage == "following"
    assert memory.targets[T].by_time == ["binlog:0"]
    control.here = Snapshot("p", "g")
    attempts.look(step)
    assert memory.targets[T].stage == "done"
