"""Which of a pipeline's sinks only one daemon may write."""

from __future__ import annotations

from daemon.config.config import Config
from daemon.sinks.kinds import sinks_of


def single_writer(config: Config, pipeline: str) -> str | None:
    """Why the pipeline's group may have one member alone: a sink and its reason; None: it may have
    several."""
    written = {route.template.split(".")[0] for route in config.routes(pipeline)}
    for name, sink in sinks_of(config).items():
        if name in written and (why := sink.single_writer) is not None:
            return f"sink {name} can have one writer only: {why}"
    return None
