"""Rules of loads: rows of the database first, the stream over them."""

from __future__ import annotations

from tests.mutation.mutation import Mutation

OF_LOADS = (
    Mutation(
        "a loaded row never overwrites",
        "offsets/fence.py",
        "    if streams and any(map(is_load, write.lanes)):\n",
        "    if False:\n",
        ("tests/sparkwriter/kit/test_contract_jobs.py",),
    ),
    Mutation(
        "a load reads once all that is below its beginning is visible",
        "daemon/operations/load/visible.py",
        "        if left_s > 0 and (why := _hidden(step, target, filled)):\n",
        "        if False:\n",
        ("tests/simulation/loads/test_loads.py",),
    ),
    Mutation(
        "nothing of the stream is written before a load's rows are there",
        "offsets/rebuild.py",
        "        return self.ends is None\n",
        "        return False\n",
        ("tests/actors/target/test_loads.py", "tests/simulation/loads/test_loads.py"),
    ),
    Mutation(
        "a load begins again behind a statement",
        "actors/target/loads.py",
        "        if what is None:\n",
        "        if True:\n",
        ("tests/actors/target/test_loads.py",),
    ),
    Mutation(
        "a load begins again behind a changed key without the whole row",
        "actors/target/loads.py",
        "        if load is None or closing is None or not staged.moves:\n",
        "        if True:\n",
        ("tests/actors/target/test_loads.py",),
    ),
    Mutation(
        "a loaded table takes its name once the stream has passed what was read",
        "offsets/rebuild.py",
        "        return all(frontiers.get(s, 0) >= end for s, end in self.ends.items())\n",
        "        return True\n",
        ("tests/offsets/test_load_steps.py",),
    ),
    Mutation(
        "a row that its route's filter leaves out is not loaded",
        "changes/routes/shaping/statements.py",
        '    living = shaped.table.filter(pc.equal(shaped.table[OP], "U")).drop_columns([OP])\n',
        "    living = shaped.table.drop_columns([OP])\n",
        ("tests/simulation/loads/test_shaped_loads.py",),
    ),
    Mutation(
        "each run of a pipeline decodes by its route of now",
        "actors/staging/child.py",
        "            if works.get(job.pipeline, ())[:2] != (job.kind, job.run):\n",
        "            if works.get(job.pipeline, ())[:1] != (job.kind,):\n",
        ("tests/actors/staging/test_process.py",),
    ),
)
