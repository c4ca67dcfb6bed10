"""How a pipeline's tables come to its cuts, as its configuration has it. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from daemon.config.config import Config
from daemon.config.pipeline_config import PipelineConfig


def planned_cuts(config: Config, name: str) -> Iterator[str]:
    """One line for each thing; none where no cut is made."""
    pipeline = PipelineConfig(config, name)
    section = pipeline.section
    if section.cut_every is None:
        return
    yield f"  a cut every {section.cut_every:g} s, listed in {section.cuts_table}"
    if pipeline.together:
        at_once = ", ".join(sorted(pipeline.together))
        yield f"  at a cut all tables change in one transaction: {at_once}"
    if pipeline.apart:
        apart = ", ".join(sorted(pipeline.apart))
        yield f"  at a cut tables change one by one, and are tagged: {apart}"
