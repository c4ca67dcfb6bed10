"""``make chaos``: every fault in turn, printed as a table and kept in ``var/chaos.json``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from sparkwriter.iceberg.section import Write
from tests.chaos.database_faults import DATABASE_FAULTS, OF_LAKES
from tests.chaos.databases import NAMES as DATABASES
from tests.chaos.faults import FAULTS, OF_DATABASES
from tests.chaos.lab import Outcome, write
from tests.chaos.lake_faults import LAKE_FAULTS
from tests.chaos.lakes import NAMES
from tests.chaos.world import database_world, world


def main() -> int:
    """Run the faults that are named, or all; status 1 when one lost or doubled anything."""
    parser = argparse.ArgumentParser(prog="make chaos")
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("var/chaos.json"))
    parser.add_argument("--write", choices=[way.value for way in Write], default="merge")
    parser.add_argument("--lake", choices=["", *NAMES], default="", help="a folder without")
    parser.add_argument("--sink", choices=["", *DATABASES], default="", help="a database")
    parser.add_argument("--away", type=float, default=60.0, help="seconds of a lake's fault")
    parser.add_argument("fault", nargs="*", help="those of the lake, and of any; all without")
    asked = parser.parse_args()
    lakes = {name: fault for name, fault in FAULTS.items() if name not in OF_DATABASES}
    faults: dict[str, Any] = {**LAKE_FAULTS.get(asked.lake, {}), **lakes}
    if asked.sink:
        general = {n: f for n, f in FAULTS.items() if not any(part in n for part in OF_LAKES)}
        faults = {**DATABASE_FAULTS, **general}
    if unknown := [name for name in asked.fault if name not in faults]:
        parser.error(f"no such fault: {', '.join(unknown)}; there are: {', '.join(faults)}")
    outcomes: list[Outcome] = []
    broken = 0
    made: Any = (
        database_world(asked.sink, asked.away)
        if asked.sink
        else world(asked.write, asked.lake, asked.away)
    )
    with made as rig:
        for name in asked.fault or faults:
            for _ in range(asked.times):
                try:
                    outcome = faults[name](rig(f"{len(outcomes)}-{broken}"))
                except (AssertionError, TimeoutError) as error:  # the other faults are due still
                    broken += 1
                    print(f"BAD   {name}: {error}", flush=True)
                    continue
                outcomes.append(outcome)
                print(_line(outcome), flush=True)
                write(outcomes, asked.out)
    for line in table(outcomes):
        print(line)
    return 0 if not broken and all(outcome.good for outcome in outcomes) else 1


def _line(outcome: Outcome) -> str:
    verdict = "good" if outcome.good else "BAD "
    return (
        f"{verdict}  {outcome.fault:42}  {outcome.messages:6} messages  {outcome.letters} dead "
        f"letters  {outcome.statements} statements  lost {outcome.lost}  "
        f"doubled {outcome.doubled}  "
        f"tables {'DIFFER: ' + ', '.join(outcome.differ) if outcome.differ else 'equal'}  "
        f"recovered in {outcome.recovery_s} s  restarts {outcome.restarts}"
        + (f"  said: {outcome.said}" if outcome.said else "")
    )


def table(outcomes: list[Outcome]) -> list[str]:
    """As docs/reliability.md has it: a row for each fault, over all its times."""
    rows = ["| fault | times | messages | lost | doubled | tables | recovery |", "|" + "---|" * 7]
    for fault in dict.fromkeys(outcome.fault for outcome in outcomes):
        those = [outcome for outcome in outcomes if outcome.fault == fault]
        took = sorted(outcome.recovery_s for outcome in those)
        equal = "differ" if any(outcome.differ for outcome in those) else "equal"
        rows.append(
            f"| {fault} | {len(those)} | {sum(o.messages for o in those):,} | "
            f"{sum(o.lost for o in those)} | {sum(o.doubled for o in those)} | {equal} | "
            + (f"{took[0]}-{took[-1]} s |" if len(took) > 1 else f"{took[0]} s |")
        )
    return rows


if __name__ == "__main__":
    sys.exit(main())
