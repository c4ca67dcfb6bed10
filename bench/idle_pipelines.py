"""What idle pipelines cost a busy one: ``python -m bench.idle_pipelines [MESSAGES]``.

One busy pipeline beside idle ones, with the real actors on a real broker and a sink that takes
every batch at once. ``own share`` is what a pipeline has where nothing is lent: a quota of its even
share, for all three parts of the memory; the next lines give one part of them back.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any, NamedTuple

import structlog

from bench.rig import config, fill, messages, run_flow
from daemon.config.file import load
from demo.broker import DevBroker

BUDGET = 256 << 20


class Case(NamedTuple):
    """``quota``: of the busy pipeline. ``queue_kbytes``: its client's queue."""

    name: str
    idle: int
    quota: float | None
    queue_kbytes: int | None


def cases(pipelines: int) -> list[Case]:
    """The busy pipeline alone, and beside the others."""
    share, idle = max(0.01, 1 / pipelines), pipelines - 1
    whole, small = BUDGET // 8 // 1024, int(BUDGET / 8 / 1024 / pipelines)
    return [
        Case("alone", 0, None, whole),
        Case("own share", idle, share, small),
        Case("own share, whole queue", idle, share, whole),
        Case("lent, smallest queue", idle, None, small),
        Case("lent", idle, None, None),
    ]


def seconds(case: Case, folder: Path, bootstrap: str, topic: str) -> float:
    """Until all is applied."""
    config(folder, bootstrap, topic, folder.name, processors=2)
    path = folder / "config.toml"
    text = path.read_text().replace("{database}", "bench")
    if case.quota is not None:
        text += f"quota.memory = {case.quota}\n"
    if case.queue_kbytes is not None:
        text += f'kafka."queued.max.messages.kbytes" = {case.queue_kbytes}\n'
    for number in range(case.idle):
        text += (
            f'[pipeline.idle{number}]\ntopics = ["idle"]\ngroup = "{folder.name}-{number}"\n'
            f'format = "canal-json"\ntarget = "lake.idle{number}.{{table}}"\n'
        )
    path.write_text(text)
    return run_flow(load(path))


def _dropped(logger: object, level: str, event: MutableMapping[str, Any]) -> str:
    raise structlog.DropEvent


def main() -> None:
    """Print a line for each case."""
    structlog.configure(processors=[_dropped])
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 600_000
    with tempfile.TemporaryDirectory() as name, DevBroker(Path(name) / "broker") as broker:
        fill(broker.bootstrap, "busy", messages(count))
        fill(broker.bootstrap, "idle", messages(1))
        for pipelines in (3, 101):
            for again in range(2):
                for number, case in enumerate(cases(pipelines)):
                    folder = Path(name) / f"{pipelines}-{again}-{number}"
                    took = seconds(case, folder, broker.bootstrap, "busy")
                    print(f"{pipelines} pipelines, {case.name}: {count / took:,.0f} rows/s",
                          flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
