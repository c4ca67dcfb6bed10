"""The store of dead letters that a pipeline's configuration names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from changes.formats.base import Format
from daemon.kafka.dead_letter_topic import TopicLetters
from daemon.letters.files import FileLetters
from daemon.letters.letter import LetterMaker


def open_letters(
    topic: str | None,
    state_dir: Path,
    pipeline: str,
    settings: Mapping[str, Any],
    format_: Format,
) -> FileLetters | TopicLetters:
    """Open it: files of the state directory, or a topic. Raises NotKept.

    ``settings`` are the pipeline's of Kafka; ``format_`` is the store's own from now on.
    """
    maker = LetterMaker.of(pipeline, format_, settings)
    if topic is None:
        return FileLetters(state_dir, pipeline, maker)
    letters = TopicLetters(settings, topic, pipeline, maker)
    letters.open()
    return letters
