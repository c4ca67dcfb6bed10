"""What the patterns of ``topics`` match now, for ``binlogd check-config --connect``."""

from __future__ import annotations

from dataclasses import dataclass

from daemon.config.config import Config
from settings.counted import counted
from sources.base.port import NotAnswered, TopicMissing
from sources.opening import open_source

SOME = 10
"""Topics that a line names."""


@dataclass(frozen=True, slots=True)
class MatchedTopics:
    """Lines about what is matched, and warnings about patterns that match nothing."""

    lines: tuple[str, ...]
    warnings: tuple[str, ...]


def check_topics(config: Config) -> MatchedTopics:
    """Ask the broker for pipelines with patterns. That it does not answer is ``check``'s to say."""
    lines: list[str] = []
    warnings: list[str] = []
    for name in config.pipeline:
        selection = config.topics_of(name)
        if not selection.patterns:
            continue
        try:
            topics = sorted(open_source(config, name).topic_ids())
        except (NotAnswered, TopicMissing):
            continue
        more = f" and {len(topics) - SOME:,} more" if len(topics) > SOME else ""
        named = f": {', '.join(topics[:SOME])}{more}" if topics else ""
        lines.append(f"pipeline {name}: reads {counted(len(topics), 'topic')} now{named}")
        for pattern in selection.unmatched(topics):
            said = "matches no topic now; one that comes is read from its beginning"
            warnings.append(f"pipeline.{name}.topics: {pattern!r} {said}")
    return MatchedTopics(tuple(lines), tuple(warnings))
