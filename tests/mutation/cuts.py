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
)
