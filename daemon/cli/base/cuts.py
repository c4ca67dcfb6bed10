"""Which pipeline's cuts a command is about, and the tables of one."""

from __future__ import annotations

from collections.abc import Sequence

from changes.model.model import TargetName
from daemon.config.config import Config
from daemon.config.pipeline_config import PipelineConfig
from daemon.state.cuts_table import CutsTable
from daemon.state.edits import chosen_pipeline
from offsets.cuts import Cut
from sparkwriter.kit.queries import NoAnswer


def chosen_cuts(settings: Config, pipeline: str | None) -> CutsTable:
    """Those of this pipeline, or of the only one that makes cuts. Raises NoAnswer, EditRefused."""
    if pipeline in settings.pipeline:
        return CutsTable(PipelineConfig(settings, pipeline))
    making = [name for name, one in settings.pipeline.items() if one.cut_every is not None]
    if not making:
        raise NoAnswer("no pipeline makes cuts: set cut_every in its section")
    return CutsTable(PipelineConfig(settings, chosen_pipeline(making, pipeline)))


def versions_in(cut: Cut, targets: Sequence[TargetName]) -> dict[TargetName, int]:
    """The snapshots of these tables in a cut. Raises NoAnswer for one that it is without."""
    found = {}
    for target in targets:
        name = str(target)
        if name in cut.left_out:
            raise NoAnswer(f"cut {cut.number} is without {name}: {cut.left_out[name]}")
        if name not in cut.versions:
            raise NoAnswer(
                f"cut {cut.number} knows no {name}: no route led to it, or nothing was written "
                "there yet"
            )
        found[target] = int(cut.versions[name])
    return found
