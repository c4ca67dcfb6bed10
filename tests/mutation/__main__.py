"""``make mutation``: takes one safety rule out at a time; some test must fail for each.

Each rule is removed in a copy of the project, never in the checkout itself.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.mutation.cuts import OF_CUTS
from tests.mutation.databases import OF_DATABASES
from tests.mutation.loads import OF_LOADS
from tests.mutation.mutation import Mutation
from tests.mutation.spills import OF_SPILLS
from tests.mutation.verify import OF_VERIFICATIONS

CHECKOUT = Path(__file__).parents[2]
COPIED = (
    "settings",
    "offsets",
    "changes",
    "databases",
    "sources",
    "actors",
    "sparkwriter",
    "collector",
    "daemon",
    "demo",
    "tests",
    "pyproject.toml",
)


SIMULATION = "tests/simulation"
MUTATIONS = (
    *OF_CUTS,
    *OF_DATABASES,
    *OF_LOADS,
    *OF_SPILLS,
    *OF_VERIFICATIONS,
    Mutation(
        "a target that stands elsewhere fences a write",
        "offsets/fence.py",
        "            if mark == span.after and done == write.begun:\n",
        "            if True:\n",
        ("tests/offsets/test_fence.py", "tests/sparkwriter/kit/test_contract.py"),
    ),
    Mutation(
        "a write that has landed is covered",
        "offsets/fence.py",
        "        return all(self._holds(lane, s.through) for lane, s in write.lanes.items())\n",
        "        return False\n",
        ("tests/sparkwriter/kit/test_contract.py",),
    ),
    Mutation(
        "a name is not taken from changes that still wait",
        "sparkwriter/kit/statements.py",
        '        if self._store.freed(to) != f"{lane}:{place_text(batch)}":\n',
        "        if False:\n",
        ("tests/sparkwriter/kit/test_contract_statements.py",),
    ),
    Mutation(
        "fsync of the offset file",
        "actors/runtime/files.py",
        "        os.fsync(file.fileno())\n",
        "",
        ("tests/daemon/state/test_offset_file.py",),
    ),
    Mutation(
        "fsync of the offset file's folder",
        "actors/runtime/files.py",
        "    sync(path.parent)\n",
        "",
        ("tests/daemon/state/test_offset_file.py",),
    ),
    Mutation(
        "a changelog counts the rows of a message on that is written in parts",
        "actors/target/entry_groups.py",
        "shown.rows + rows",
        "rows",
        ("tests/actors/target/test_entry_groups.py",),
    ),
    Mutation(
        "a message that is taken apart has all below it in",
        "actors/target/entry_groups.py",
        "offset if group.last else offset - 1",
        "offset if group.last else hwm",
        ("tests/actors/target/test_entry_groups.py",),
    ),
    Mutation(
        "a column that is added beside rows divides their message",
        "actors/contract/multi_entry.py",
        "    return not (ddl.steps or ddl.redefined or ddl.refused or ddl.unread)\n",
        "    return not (ddl.refused or ddl.unread)\n",
        ("tests/actors/fetcher/test_parts.py",),
    ),
    Mutation(
        "what is staged is fenced by a mark that came past it",
        "actors/target/rule.py",
        "buffer.opened(as_staged(buffer, state))",
        "buffer.opened(state)",
        ("tests/actors/target/test_rebalance.py",),
    ),
    Mutation(
        "the file before Kafka",
        "actors/committer/rule.py",
        "        self._owned = owned\n        return [",
        "        self._owned = owned\n"
        "        early = self._saved_as(msg.Saved(self._ledger.frontiers()))\n"
        "        self._saving = snapshot\n        return [*early, ",
        (f"{SIMULATION}/test_flow.py",),
    ),
    Mutation(
        "the epoch check of acknowledgements",
        "actors/committer/rule.py",
        "            if self._epochs.get(source) != epoch:\n",
        "            if source not in self._epochs:\n",
        (SIMULATION, "tests/actors"),
    ),
    Mutation(
        "Dispatched before the data",
        "actors/fetcher/rule.py",
        "        if problem is None:\n            return out, None\n",
        "        out.append(out.pop(0))\n"
        "        if problem is None:\n            return out, None\n",
        ("tests/actors/fetcher/test_rule.py", SIMULATION),
    ),
    Mutation(
        "the filter by high-water marks",
        "actors/contract/raw_messages.py",
        "        if self.first > mark:\n            return self\n",
        "        if self.first > mark or mark >= 0:\n            return self\n",
        (SIMULATION,),
    ),
    Mutation(
        "a statement's stamp",
        "actors/target/barrier.py",
        "            lanes=buffer.spans(buffer.through),\n",
        "            lanes={},\n",
        (f"{SIMULATION}/test_flow.py",),
    ),
    Mutation(
        "what came before a statement is written first",
        "actors/target/pending.py",
        "if taken and (self.chunks[0].is_barrier or self.chunks[0].table != taken[0].table):",
        "if taken and self.chunks[0].table != taken[0].table:",
        (f"{SIMULATION}/test_flow.py",),
    ),
    Mutation(
        "a dead letter is stored before the mark passes it",
        "actors/target/rule.py",
        "            and buffer.pending_letter is None\n            and self._is_due",
        "            and self._is_due",
        ("tests/actors/test_dead_letters.py", SIMULATION),
    ),
    Mutation(
        "bad records that earlier runs stored within the hour count",
        "actors/dead_letters.py",
        "for age in self._earlier)",
        "for age in ())",
        ("tests/actors/test_dead_letters.py",),
    ),
    Mutation(
        "a replayed record is as old as it was at first",
        "daemon/operations/replay/conflicts.py",
        "return min(offsets)",
        "return record.offset",
        ("tests/daemon/operations/replay/test_conflicts.py",),
    ),
    Mutation(
        "what a failed append left of a letter is written over",
        "daemon/state/dead_letters/lines.py",
        "            os.ftruncate(handle, end)  # complete",
        "            pass  # complete",
        ("tests/daemon/state/dead_letters/test_letter_files.py",),
    ),
    Mutation(
        "rows of several lanes are folded in the source's order",
        "changes/routes/fold.py",
        "    if has_positions(table):\n",
        "    if False:\n",
        ("tests/changes/model/test_positions.py", SIMULATION),
    ),
    Mutation(
        "what waits behind a write that is given up goes with it",
        "actors/target/rebalance.py",
        "frozenset(mine.keys() | behind)",
        "frozenset(mine)",
        ("tests/actors/target/test_given_up_together.py",),
    ),
    Mutation(
        "shares of one partition are offered one after another",
        "actors/fetcher/offers.py",
        "        if self._parked[to] or to in self._asked:\n",
        "        if self._parked[to]:\n",
        ("tests/actors/fetcher/test_rule.py", SIMULATION),
    ),
    Mutation(
        "stragglers of the own group are told from strangers",
        "actors/target/rule.py",
        "(straggler or write.over(self._epochs))",
        "write.over(self._epochs)",
        (f"{SIMULATION}/test_group.py",),
    ),
    Mutation(
        "a position stays before the first part of a message that is not whole",
        "actors/committer/rule.py",
        "sent.runs, sent.fragments\n",
        "sent.runs\n",
        (f"{SIMULATION}/test_flow.py", "tests/actors/fetcher/test_parts.py"),
    ),
    Mutation(
        "a gap in a producer's running numbers stops the pipeline",
        "actors/fetcher/reassembly.py",
        "        if last is not None and number not in (1, last + 1):\n",
        "        if False:\n",
        ("tests/actors/fetcher/test_parts.py",),
    ),
    Mutation(
        "a log that was cut is told by its leader epoch",
        "sources/kafka/start_resolver.py",
        "        check_logs(self.settings, there, self._answer_s)\n",
        "",
        (
            "tests/integration/test_log_replaced.py::"
            "test_a_broker_that_lost_its_disk_is_refused_by_the_leader_epoch",
        ),
    ),
    Mutation(
        "the position stays below messages whose format is not detected",
        "actors/fetcher/rule.py",
        "if self._recognition.holds(source) or self._cutting.holds(source):",
        "if self._cutting.holds(source):",
        ("tests/actors/fetcher/test_recognition.py",),
    ),
    Mutation(
        "what waits for its format goes with its partition",
        "actors/fetcher/rule.py",
        "            self._recognition.drop(source)\n",
        "",
        ("tests/actors/fetcher/test_recognition.py", f"{SIMULATION}/test_flow.py"),
    ),
    Mutation(
        "what waited for its format goes first",
        "actors/fetcher/recognition.py",
        "for each in (*held, fetched)",
        "for each in (fetched, *held)",
        ("tests/actors/fetcher/test_recognition.py",),
    ),
)


def survives(mutation: Mutation) -> bool:
    """Whether all tests pass without the rule. Raises ValueError where its text is not there."""
    with tempfile.TemporaryDirectory(prefix="binlogd-mutation-") as text:
        folder = Path(text)
        for name in COPIED:
            source = CHECKOUT / name
            copy = shutil.copytree if source.is_dir() else shutil.copy2
            copy(source, folder / name)
        path = folder / mutation.file
        source_text = path.read_text()
        if source_text.count(mutation.text) != 1:
            raise ValueError(f"{mutation.rule}: its text is not once in {mutation.file}")
        path.write_text(source_text.replace(mutation.text, mutation.without))
        command = [sys.executable, "-m", "pytest", "-q", "-x", *mutation.tests]
        env = {"BINLOGD_JARS": str(CHECKOUT / "var/jars"), **os.environ}
        ended = subprocess.run(
            command, cwd=folder, env=env, capture_output=True, text=True, check=False
        )
        if ended.returncode not in (0, 1):
            raise ValueError(f"{mutation.rule}: the tests did not run:\n{ended.stdout[-2000:]}")
        found = [line for line in ended.stdout.splitlines() if line.startswith("FAILED")]
        print(f"{mutation.rule}: {found[0][:140] if found else 'SURVIVES'}", flush=True)
        return ended.returncode == 0


def main() -> int:
    """Try them all; status 1 when a rule can go without a test that says so."""
    survivors = [mutation.rule for mutation in MUTATIONS if survives(mutation)]
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
