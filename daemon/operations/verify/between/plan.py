"""Plans comparisons of targets with each other: a job for each pipeline that fills a first one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from daemon.config.pipeline_config import PipelineConfig
from daemon.operations.engine.port import Look, Plan
from daemon.operations.engine.record import JobRequest
from daemon.operations.verify.at_cut import CUT, at_cut, read_cut
from daemon.operations.verify.between.pairs import (
    BETWEEN,
    LIKE_THIS,
    LONE,
    UNFIT,
    FilledTarget,
    OtherSide,
    Pairs,
    paired,
)
from daemon.state.edits import EditRefused

Pair = tuple[FilledTarget, FilledTarget]


def plan_between(look: Look, kind: str, first: str, second: str, asked: Mapping[str, Any]) -> Plan:
    """Which targets would be compared with each other, and which not and why. ``asked``: what the
    request has beside the two. Raises EditRefused, StoreError."""
    pairs = paired(look, first, second)
    lines = [f"{one.target}: is compared with {other.target}" for one, other in pairs.found]
    lines += [f"{one.target}: is not compared: {one.why}" for one in (*pairs.unfit, *pairs.lone)]
    if pairs.unknown:
        refusals = [f"{each}: no target is called so ({LIKE_THIS})" for each in pairs.unknown]
        return Plan(lines=tuple(lines), refusals=tuple(refusals))
    if not pairs.found:
        return Plan(refusals=tuple(lines))
    wanted = tuple(_jobs(look, kind, pairs, asked))
    document = {
        "pairs": [[str(one.target), str(other.target)] for one, other in pairs.found],
        "refused": {one.target: one.why for one in (*pairs.unfit, *pairs.lone)},
    }
    return Plan(wanted, tuple(lines), document)


def _jobs(look: Look, kind: str, pairs: Pairs, asked: Mapping[str, Any]) -> Iterator[JobRequest]:
    lone, unfit = ([one._asdict() for one in some] for some in (pairs.lone, pairs.unfit))
    for pipeline in dict.fromkeys(one.pipeline for one, _ in pairs.found):
        own = [pair for pair in pairs.found if pair[0].pipeline == pipeline]
        yield JobRequest(
            kind,
            pipeline,
            tuple(str(one.target) for one, _ in own),
            {
                "sample": look.config.pipeline[pipeline].verify.sample,
                **asked,
                "tables": [str(one.table) for one, _ in own],
                BETWEEN: [OtherSide(two.pipeline, str(two.target)).document() for _, two in own],
                LONE: lone,
                UNFIT: unfit,
                **_in_cut(look, pipeline, own, asked),
            },
        )
        lone = unfit = []


def _in_cut(
    look: Look, pipeline: str, own: list[Pair], asked: Mapping[str, Any]
) -> dict[str, object]:
    number = asked.get("cut")
    if number is None:
        return {}
    config = PipelineConfig(look.config, pipeline)
    try:
        cut = read_cut(config, int(number))
    except EditRefused as error:
        raise EditRefused(*map(look.config.redactor.text, error.lines)) from error
    return {CUT: at_cut(cut, [one.target for one, _ in own], config.versioned).document()}
