"""Rules of cuts: what a cut names can be read for as long as it is kept."""

from __future__ import annotations

from tests.mutation.mutation import Mutation

OF_CUTS = (
    Mutation(
        "a crash before a cut's row leaves the last visible cut its tags",
        "offsets/cuts.py",
        "    return held.union(ordered[-2:])\n",
        "    return held.union(ordered[-1:])\n",
        ("tests/offsets/test_cuts.py",),
    ),
    Mutation(
        "a tag stands for its table until the table's next tag",
        "offsets/cuts.py",
        "if keep.recent(end - 1, now) or",
        "if keep.recent(tag, now) or",
        ("tests/offsets/test_cuts.py",),
    ),
    Mutation(
        "a tag outlives the age that a table's properties allow",
        "sparkwriter/iceberg/java.py",
        "        return tag.maxRefAgeMs(_NEVER_MS).build()\n",
        "        return tag.build()\n",
        ("tests/sparkwriter/iceberg/test_tags.py",),
    ),
    Mutation(
        "a query of a cut reads each table as it is in the cut",
        "sparkwriter/iceberg/queries.py",
        "                own = at[target] if isinstance(at, Mapping) else at\n",
        "                own = None if isinstance(at, Mapping) else at\n",
        ("tests/daemon/cli/test_cuts.py::test_a_query_sees_all_tables_as_they_are_in_a_cut",),
    ),
    Mutation(
        "the position stays below messages that are held for a cut",
        "actors/fetcher/rule.py",
        "if self._recognition.holds(source) or self._cutting.holds(source):",
        "if self._recognition.holds(source):",
        ("tests/actors/fetcher/test_cutting.py",),
    ),
    Mutation(
        "what was paused for a cut flows again behind it",
        "actors/fetcher/rule.py",
        "if self._cutting.let_flow() and not self._paused:",
        "if False:",
        ("tests/actors/fetcher/test_aligning.py",),
    ),
    Mutation(
        "what a cut held of other partitions goes on where one of them goes away",
        "actors/fetcher/cutting.py",
        "            self._asked, self._void = None, True\n",
        "            self._asked = None\n",
        ("tests/actors/fetcher/test_aligning.py",),
    ),
)
