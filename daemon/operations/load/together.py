"""Plans of several pipelines for the same patterns: what one has, the others need not. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from daemon.operations.engine.port import Plan


def together(plans: Mapping[str, Plan], patterns: Sequence[str]) -> dict[str, Plan]:
    """The plans, by pipeline, of those that have one of the tables.

    All of them where none has; where a pattern is nobody's, each is refused for that.
    """
    usable = {name: plan for name, plan in plans.items() if plan.document.get("patterns")}
    if not usable:
        return dict(plans)
    chosen = {one for plan in usable.values() for one in plan.document["patterns"]}
    left = tuple(f"{one}: no table is called so" for one in patterns if one not in chosen)
    if left:
        return {name: Plan((), refusals=left) for name in list(usable)[:1]}
    others = tuple(f"{one}: no table of pipeline" for one in patterns)
    return {
        name: replace(
            plan, refusals=tuple(line for line in plan.refusals if not line.startswith(others))
        )
        for name, plan in usable.items()
    }
