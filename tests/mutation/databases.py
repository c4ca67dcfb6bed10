"""Rules of databases as targets: what somebody else did passes for nobody's own."""

from __future__ import annotations

from tests.mutation.mutation import Mutation

OF_DATABASES = (
    Mutation(
        "a row of the ledger that somebody changed is refused",
        "sparkwriter/sql/ledger.py",
        "        if checksum is not None and checksum != checksum_of(target, marks, made):\n",
        "        if False:\n",
        ("tests/sparkwriter/sql/test_others.py",),
    ),
    Mutation(
        "a table that somebody recreated has none of the marks",
        "sparkwriter/sql/identity.py",
        "    return bool(known) and of_ledger == ledger and identity != table.identity\n",
        "    return False\n",
        ("tests/sparkwriter/sql/test_altered.py",),
    ),
    Mutation(
        "a table is replaced whatever is wrong with it",
        "sparkwriter/kit/marks_table/store.py",
        "        old, new = self.replaced(swap.old), self.look(swap.new)\n",
        "        old, new = self.look(swap.old), self.look(swap.new)\n",
        ("tests/sparkwriter/sql/test_altered.py",),
    ),
)
