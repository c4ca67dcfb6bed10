"""Which topics a pipeline reads: those that it names, and those that match its patterns. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

PATTERN = "^"
"""An entry that begins so is a regular expression, as for Kafka's clients: it is matched from a
name's beginning on, and to its end only where it says ``$``."""

INTERNAL = "__"
"""Names that begin so are Kafka's own topics, and those of tools around it."""


def is_pattern(entry: str) -> bool:
    """Whether an entry of ``topics`` is a pattern; else it is a topic's name."""
    return entry.startswith(PATTERN)


@dataclass(frozen=True, slots=True)
class TopicSelection:
    """``entries`` and ``excluded`` are ``topics`` and ``exclude_topics``. ``own``: binlogd's own
    topics, which no pattern takes; a topic of Kafka's own only where its name is an entry."""

    entries: tuple[str, ...]
    excluded: tuple[str, ...] = ()
    own: frozenset[str] = field(default_factory=frozenset)

    @property
    def names(self) -> tuple[str, ...]:
        """Topics that are read by their names: each has to be there."""
        return tuple(entry for entry in self.entries if not is_pattern(entry))

    @property
    def patterns(self) -> tuple[str, ...]:
        """The entries that are patterns: their topics come and go."""
        return tuple(entry for entry in self.entries if is_pattern(entry))

    def reads(self, topic: str) -> bool:
        """Whether the pipeline reads a topic of this name."""
        return topic in self.names or self.matches(topic)

    def matches(self, topic: str) -> bool:
        """Whether a pattern takes it."""
        if topic in self.own or topic.startswith(INTERNAL) or _fits(topic, self.excluded):
            return False
        return any(re.match(pattern, topic) for pattern in self.patterns)

    def comes_and_goes(self, topic: str) -> bool:
        """Whether patterns alone take it, so that its absence is no error."""
        return topic not in self.names and self.matches(topic)

    def matching(self, there: Iterable[str]) -> list[str]:
        """Of the topics that there are, those that patterns alone take, in the order of names."""
        return sorted(topic for topic in there if self.comes_and_goes(topic))

    def unmatched(self, there: Sequence[str]) -> list[str]:
        """The patterns that no topic matches now."""
        taken = [topic for topic in there if self.matches(topic)]
        return [p for p in self.patterns if not any(re.match(p, topic) for topic in taken)]


def _fits(topic: str, entries: Sequence[str]) -> bool:
    return any(re.match(e, topic) if is_pattern(e) else e == topic for e in entries)


def entry_problems(entries: Sequence[str], excluded: Sequence[str]) -> Iterator[str]:
    """What is wrong with ``topics`` and ``exclude_topics``, a line each."""
    for key, several in (("topics", entries), ("exclude_topics", excluded)):
        for entry in several:
            if (why := _unfit(entry)) is not None:
                yield f"{key}: {entry!r}: {why}"
                return
    if excluded and not any(map(is_pattern, entries)):
        yield 'exclude_topics: topics has no pattern (one begins with "^") that it could narrow'
    for name in (entry for entry in entries if not is_pattern(entry)):
        if _fits(name, excluded):
            yield f"exclude_topics: takes {name!r} away, which topics names"


def _unfit(entry: str) -> str | None:
    """Why an entry is neither a topic's name nor a pattern."""
    if not is_pattern(entry):
        return None if entry else "a topic has a name"
    if "[[:" in entry or "[[." in entry or "[[=" in entry:
        return "classes of POSIX are not understood: write [a-z] for [[:lower:]]"
    try:
        re.compile(entry)
    except re.error as error:
        return f"is no regular expression: {error}"
    return None
