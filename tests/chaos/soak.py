"""``make soak``: random faults under load for a while; at the end all is equal, and flat.

In the first third of the time everything may happen. Afterwards the daemon itself is left to live:
what it then holds in the last third is compared with the second.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from daemon.state.offset_file import OffsetFile
from sparkwriter.iceberg.section import Write
from tests.chaos.faults import STEPS, kill_jvm
from tests.chaos.flat import Rule, Sample, Verdict, judge
from tests.chaos.lab import Lab, Outcome, lab
from tests.chaos.sampler import GROWN_UP_S, Sampler
from tests.chaos.world import world
from tests.integration.rig import Rig

RULES = (
    Rule("daemon", "rss_mb", part=0.05, slack=5),
    Rule("daemon", "files", part=0.0, slack=10),
    Rule("daemon", "threads", part=0.0, slack=5),
    Rule("decoding", "rss_mb", part=0.05, slack=5),
    Rule("decoding", "files", part=0.0, slack=5),
    # A heap of a fixed size that is used as it comes: see SETTINGS.
    Rule("jvm", "rss_mb", part=0.1, slack=0),
    Rule("jvm", "files", part=0.0, slack=60),
    Rule("jvm", "threads", part=0.0, slack=30),
)
CALM_S = (5.0, 20.0)
"""Between two faults."""
LOAD: Mapping[str, Any] = {
    "partitions": 2, "pause_s": 0.05, "alter_every": 200, "bad_every": 150, "most_waiting": 8000,
}  # fmt: skip
"""Twenty transactions a second, a hundred messages."""
SETTINGS = (
    ("warm_up = false", 'warm_up = false\nconf."spark.driver.memory" = "512m"'),
    ("max_age_s = 0.2", "max_age_s = 1.0"),
    # Thousands of writes: a table keeps the snapshots of a minute.
    ('kind = "iceberg"', 'kind = "iceberg"\nmaintenance.expire_snapshots_older_than_s = 60\n'
     "maintenance.interval_s = 30"),
)  # fmt: skip


@dataclass(slots=True)
class Trouble:
    """Brings about what the seed says, one fault after another. One thread's."""

    made: Lab
    rig: Rig
    rng: random.Random
    jvm_since: float = 0.0
    restarts: int = 0
    """Of the daemon, that a fault brought about. More, and it ended by itself."""
    told: list[dict[str, object]] = field(default_factory=list)

    def next(self, deadly: bool) -> None:
        """One fault, and the next write after it; raises AssertionError when none comes."""
        faults: dict[str, Callable[[], None]] = {
            "SIGSTOP": self._stop_for_a_while,
            "broker killed": lambda: self._broker(self.rig.broker.kill),
            "broker stopped": lambda: self._broker(self.rig.broker.stop),
            "a second daemon": self._second,
        }
        if time.monotonic() - self.jvm_since > GROWN_UP_S * 2:
            faults["JVM killed"] = self._jvm
        if deadly:
            faults |= {
                "killed": self._killed,
                "killed, offset file corrupted": self._damaged,
                **{step: partial(self._cut, step) for step in STEPS},
            }
        name = self.rng.choice(list(faults))
        begun = time.monotonic()
        faults[name]()
        took = round(time.monotonic() - begun, 1)
        self.told.append({"fault": name, "took_s": took})
        print(f"{name:42}  {took:6} s  {self.made.source.count} messages", flush=True)

    def _stop_for_a_while(self) -> None:
        self.made.patient.signal(signal.SIGSTOP)
        threading.Event().wait(self.rng.uniform(1, 15))
        self.made.patient.signal(signal.SIGCONT)
        self.made.wait_for("written", 2)

    def _broker(self, end: Callable[[], None]) -> None:
        end()
        threading.Event().wait(self.rng.uniform(0, 5))
        self.rig.broker.start()
        self.made.wait_for("written", 2)

    def _second(self) -> None:
        name = f"other{len(self.told)}"
        self.made.member(name)
        self.made.wait_for("written", 3, member=name)
        before = self.made.count("assigned")
        self.made.leave(name)
        self.made.reach("assigned", before + 1)
        self.made.wait_for("written", 2)

    def _jvm(self) -> None:
        kill_jvm(self.made)
        self.jvm_since = time.monotonic()

    def _killed(self) -> None:
        self.restarts += 1
        self.made.patient.kill()
        self._up_again()

    def _damaged(self) -> None:
        self.restarts += 1
        patient = self.made.patient
        deaths = len(patient.deaths)
        patient.hold()
        patient.kill()
        self.made.wait_for_death(deaths + 1)
        path = OffsetFile(self.made.state_dir, "p").path
        path.write_bytes(path.read_bytes()[: self.rng.randrange(200)])
        patient.resume()
        self._up_again()

    def _cut(self, step: str) -> None:
        self.restarts += 2
        patient = self.made.patient
        deaths = len(patient.deaths)
        patient.cut_next(STEPS[step])
        patient.kill()
        self.made.wait_for_death(deaths + 2)
        self._up_again()

    def _up_again(self) -> None:
        self.made.wait_for("running")
        self.jvm_since = time.monotonic()
        self.made.wait_for("written", 3)


def soak(rig: Rig, seconds: float, seed: int) -> tuple[Outcome, list[Sample], Trouble]:
    """The whole run. Raises AssertionError where the daemon does not come back."""
    rig.kafka.update({"session.timeout.ms": 6000, "max.poll.interval.ms": 8000})
    calm = threading.Event()
    with lab(rig, "soak", settings=SETTINGS, **LOAD, seed=seed) as made:
        made.wait_for("written", 3)
        trouble = Trouble(made, rig, random.Random(seed))
        sampler = Sampler(lambda: made.patient.process.pid)
        sampler.start()
        begun = time.monotonic()
        while (passed := time.monotonic() - begun) < seconds:
            trouble.next(deadly=passed < seconds / 3 - 60)
            calm.wait(trouble.rng.uniform(*CALM_S))
        samples = sampler.stop()
        made.settle()
        return made.outcome(0), samples, trouble


def _say(outcome: Outcome, verdicts: Sequence[Verdict], by_itself: int) -> None:
    print(
        f"{'good' if outcome.good else 'BAD'}: {outcome.messages} messages, "
        f"{outcome.letters} dead letters, {outcome.statements} statements; lost {outcome.lost}, "
        f"doubled {outcome.doubled}, tables that differ: {', '.join(outcome.differ) or 'none'}"
    )
    print(f"ended by itself: {by_itself} times {outcome.said if by_itself else ''}")
    for one in verdicts:
        before, after = (f"{v:.0f}" if v is not None else "?" for v in (one.before, one.after))
        flat = "flat" if one.flat else "NOT FLAT"
        print(f"{one.rule.kind:9} {one.rule.figure:8} {before:>6} -> {after:>6}  {flat}")


def main() -> int:
    """Status 1 where anything was lost, doubled, different, or not flat, or a daemon ended that no
    fault had ended."""
    parser = argparse.ArgumentParser(prog="make soak")
    parser.add_argument("--seconds", type=float, default=1200)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(3), "big"))
    parser.add_argument("--write", choices=[way.value for way in Write], default="merge")
    parser.add_argument("--out", type=Path, default=Path("var/soak.json"))
    asked = parser.parse_args()
    print(f"seed {asked.seed}, {asked.seconds:.0f} s, write {asked.write}", flush=True)
    with world(asked.write) as rig:
        outcome, samples, trouble = soak(rig("soak"), asked.seconds, asked.seed)
    verdicts = [judge(samples, rule, asked.seconds) for rule in RULES]
    by_itself = outcome.restarts - trouble.restarts
    _say(outcome, verdicts, by_itself)
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    document = {
        "seed": asked.seed, "seconds": asked.seconds, "write": asked.write,
        "outcome": outcome.as_dict(),
        "ended_by_itself": by_itself,
        "faults": trouble.told,
        "flat": [asdict(v) | {"bound": v.bound, "flat": v.flat} for v in verdicts],
        "samples": [asdict(sample) for sample in samples],
    }  # fmt: skip
    asked.out.write_text(json.dumps(document, indent=1) + "\n")
    calm = by_itself == 0 and all(verdict.flat for verdict in verdicts)
    return 0 if outcome.good and calm else 1


if __name__ == "__main__":
    sys.exit(main())
