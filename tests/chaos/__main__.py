"""``make chaos``: every fault in turn, printed as a table and kept in ``var/chaos.json``."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from demo.broker import DevBroker
from sparkwriter.jars import lake_jars
from sparkwriter.java import find_java
from sparkwriter.session import start_session
from tests.chaos.run import FAULTS, Outcome, write
from tests.integration.rig import JVM, Rig


def main() -> int:
    """Run the faults that are named, or all; status 1 when one lost or doubled anything."""
    parser = argparse.ArgumentParser(prog="make chaos")
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("var/chaos.json"))
    parser.add_argument("fault", nargs="*", help=f"of: {', '.join(FAULTS)}")
    asked = parser.parse_args()
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory(prefix="binlogd-chaos-") as text:
        folder = Path(text)
        lake = {
            "type": "jdbc", "uri": f"jdbc:sqlite:file:{folder}/catalog.db",
            "jdbc.schema-version": "V1", "warehouse": str(folder / "warehouse"),
        }  # fmt: skip
        os.environ["JAVA_HOME"] = str(find_java().home)
        log = folder / "spark.log"
        spark = start_session(JVM, "local[1]", lake_jars(), {"lake": lake}, log)
        with DevBroker(folder / "broker") as broker:
            for name in asked.fault or FAULTS:
                for number in range(asked.times):
                    place = folder / f"{len(outcomes)}-{number}"
                    place.mkdir()
                    outcome = FAULTS[name](Rig(broker, lambda: spark, lake, place))
                    outcomes.append(outcome)
                    print(_line(name, outcome), flush=True)
                    write(outcomes, asked.out)
        spark.stop()
    return 0 if all(outcome.good for outcome in outcomes) else 1


def _line(name: str, outcome: Outcome) -> str:
    verdict = "good" if outcome.good else "BAD"
    return (
        f"{verdict}  {name:36}  {outcome.messages:7} messages  lost {outcome.lost}  "
        f"doubled {outcome.doubled}  tables {'equal' if outcome.equal else 'DIFFER'}  "
        f"recovered in {outcome.recovery_s} s  restarts {outcome.restarts}"
    )


if __name__ == "__main__":
    sys.exit(main())
