"""One seed's way from the source to the lake: its steps, its topic, its pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

from tests.live.daemon import Pipeline
from tests.live.generator import Generator
from tests.live.history import History
from tests.live.readers import Reader
from tests.live.sources import Source
from tests.live.topic import Topic


class Flow:
    """A seed that is under way. One thread's."""

    def __init__(
        self, seed: int, source: Source, reader: Reader, bootstrap: str, without: frozenset[str]
    ) -> None:
        """Make its databases and its topic. ``without``: kinds of steps that are left out."""
        self.seed = seed
        self.source, self.reader = source, reader
        without |= frozenset(reader.left_out)
        self.name = f"s{seed}"
        self.history = History()
        kinds = {maker: n for maker, n in source.kinds.items() if maker.__name__ not in without}
        self.generator = Generator(seed, source.prepare(seed), kinds, reader.unread)
        self.topic = Topic(bootstrap, f"live-{self.name}")
        self.ended = ""
        """Why nothing of it is done any more."""

    def pipeline(self) -> Pipeline:
        """binlogd's side of it."""
        tables = f"{self.source.prefix}{self.seed}_*.*"
        return Pipeline(self.name, self.topic.name, section(self.seed, tables, self.reader.format))

    def read(self, folder: Path) -> None:
        """Have its reader begin."""
        self.reader.add(self.name, self.topic.name, self.seed, self.source, folder)

    @property
    def keeps(self) -> bool:
        """Whether the lake keeps columns that the source dropped: by choice, or by ignorance."""
        follows = self.pipeline().more["ddl.drop_column"] == "follow"
        return not follows or not self.source.tells_statements

    def step(self) -> None:
        """One step on the source."""
        step = self.generator.next()
        error = self.source.run(self.generator.schema, step.statements)
        self.history.add(step, error)
        if not error:
            self.generator.accepted(step)


def section(seed: int, tables: str, format_: str) -> Mapping[str, Any]:
    """What a pipeline of some tables is set to: by its seed, so that in time each setting meets
    each kind of statement."""
    rng = Random(f"section {seed}")
    keep_or_follow = ("keep", "follow")
    return {
        "include": [tables],
        "format": rng.choice((format_, "auto")),
        "write": rng.choice(("merge", "equality")),
        "on_refused_target": rng.choice(("quarantine", "quarantine", "stop")),
        "ddl.drop_column": rng.choice(keep_or_follow),
        "ddl.drop_table": "follow",
        "ddl.not_understood": rng.choice(("report", "stop")),
    }
