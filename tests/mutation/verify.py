"""Rules of verifications and repairs beside a stream."""

from __future__ import annotations

from tests.mutation.mutation import Mutation

SIMULATION = "tests/simulation/verify"

OF_VERIFICATIONS = (
    Mutation(
        "a repair leaves out rows that the log changes up to where the stream stands",
        "daemon/operations/verify/repair_story.py",
        "    return [key for key in ready.keys if key not in moved]\n",
        "    return [key for key in ready.keys if key not in moved or True]\n",
        ("tests/daemon/operations/verify/test_repair_rows.py", SIMULATION),
    ),
    Mutation(
        "what another member has written is below the place where the stream stands",
        "daemon/operations/verify/repair_story.py",
        "marks.get(source, NO_OFFSET) + 1)\n",
        "0)\n",
        ("tests/daemon/operations/verify/test_rule.py",),
    ),
    Mutation(
        "keys that rows came to while their table was compared are looked at",
        "daemon/operations/verify/key_texts.py",
        "    return after, look(found)\n",
        "    return after, seen\n",
        ("tests/daemon/operations/verify/test_repair_rows.py", SIMULATION),
    ),
    Mutation(
        "an extra row of a partition is looked up in all of the source's, its key being masked",
        "daemon/operations/verify/values_side.py",
        "            for shown in self._tables() if keys else ():\n",
        "            for shown in self._tables(self._within) if keys else ():\n",
        ("tests/daemon/operations/verify/test_partition_routes.py",),
    ),
    Mutation(
        "a comparison of a partition puts off none of all rows",
        "daemon/operations/verify_schedule.py",
        " and wanted.params.get(PARTITION) is None\n",
        "\n",
        ("tests/daemon/operations/test_verify_schedule.py",),
    ),
    Mutation(
        "what is spilled is not in a target that is compared with another",
        "daemon/operations/verify/between/places.py",
        "            done = min(done, spill.lanes[source][0])\n",
        "            done = max(done, spill.lanes[source][0])\n",
        ("tests/daemon/operations/verify/between/test_places.py",),
    ),
    Mutation(
        "a target whose log is read again may hold more than its marks say",
        "daemon/operations/verify/between/places.py",
        "recorded.partitions[source].reread or 0)\n",
        "0)\n",
        ("tests/daemon/operations/verify/between/test_places.py",),
    ),
    Mutation(
        "rows that the log changed between two sinks are looked at once both have that",
        "daemon/operations/verify/between/lookout.py",
        "        self._wanted = self.settled()\n        return repeated(",
        "        self._wanted = {}\n        return repeated(",
        ("tests/daemon/operations/verify/between/test_places.py",),
    ),
    Mutation(
        "a foreign key ends a repair's row, and the stream waits for it",
        "sparkwriter/sql/base/session.py",
        "        return WaitsForRows(str(error))\n",
        "        return SinkUnavailable(str(error))\n",
        ("tests/daemon/operations/verify/test_repair_rows.py",),
    ),
)
