"""``[pipeline.NAME.quota]``: what one pipeline may take of what all share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic import Field

from daemon.config.sections import Section

SMALLEST = 0.01
"""The smallest share of the memory. Less leaves a processor no room for one batch."""


class QuotaSection(Section):
    """``memory`` is a share of ``[memory]``'s budgets: pipelines without one share evenly what the
    others leave. ``writers``: so many of each sink's at a time. ``messages_per_s``: what is read
    at most, on average over a second."""

    memory: float | None = Field(None, ge=SMALLEST, le=1, strict=False)
    writers: int | None = Field(None, ge=1)
    messages_per_s: float | None = Field(None, ge=1, strict=False)


def shares(quotas: Mapping[str, QuotaSection]) -> dict[str, float]:
    """Each pipeline's share of the memory; together 1 at most."""
    fixed = {name: quota.memory for name, quota in quotas.items() if quota.memory is not None}
    others = len(quotas) - len(fixed)
    each = (1 - sum(fixed.values())) / others if others else 0.0
    return {name: fixed.get(name, each) for name in quotas}


def unfit_shares(quotas: Mapping[str, QuotaSection]) -> Iterator[str]:
    """What is wrong with the shares together."""
    found = shares(quotas)
    fixed = sum(quota.memory or 0.0 for quota in quotas.values())
    if fixed > 1 + 1e-9:
        yield f"pipeline.*.quota.memory: together {fixed:g}, and 1 is all there is"
    elif min(found.values(), default=1) < SMALLEST:
        left = [name for name, quota in quotas.items() if quota.memory is None]
        yield (
            f"pipeline.*.quota.memory: together {fixed:g}, which leaves {', '.join(left)} less "
            f"than {SMALLEST:g} each"
        )
