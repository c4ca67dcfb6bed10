"""Rules of spills: what a target has not got is on disk before it counts as done."""

from __future__ import annotations

from tests.mutation.mutation import Mutation

OF_SPILLS = (
    Mutation(
        "a spill is listed before its messages count as done",
        "actors/target/quarantine.py",
        "        out = self._list(buffer, quarantine)\n",
        "        out = list[fx.TargetEffect]()\n",
        ("tests/actors/target/test_quarantine.py",),
    ),
    Mutation(
        "nothing follows what a full spill dropped at a stop",
        "actors/target/quarantine.py",
        "        if quarantine.dropped:\n            return []  # nothing may follow the gap",
        "        if False:\n            return []  # nothing may follow the gap",
        ("tests/actors/target/test_away.py",),
    ),
    Mutation(
        "what a full spill dropped at a stop is noted",
        "actors/target/quarantine_state.py",
        "        self.dropped = True\n",
        "",
        ("tests/actors/target/test_away.py",),
    ),
)
