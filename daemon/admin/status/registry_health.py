"""What is not well with a pipeline's schema registry. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from daemon.admin.status import document as doc
from daemon.admin.status.conditions import Condition, Level
from daemon.admin.status.words import duration
from settings.counted import counted


def of_registry(p: doc.Pipeline, lasting_s: float) -> Iterator[Condition]:
    """An outage holds up messages that wait for it, if any: ill after ``lasting_s``."""
    waits = [
        f"{counted(each['messages'], 'message')} of {topic} wait for schema "
        f"{', '.join(each['schemas'])}"
        for topic, each in p["schemas_awaited"].items()
    ]
    if (away_s := p["registry_away_seconds"]) is not None:
        line = f"the schema registry gives no answer for {duration(away_s)}: {p['registry_error']}"
        level: Level = "ill" if waits and away_s > lasting_s else "passing"
        line = "; ".join((line, *waits))
        yield Condition("registry_away", line, level, seconds=away_s)
    elif waits:
        yield Condition("schema_awaited", "; ".join(waits), "passing")
