"""Opens the store of dead letters that a pipeline's configuration names."""

from __future__ import annotations

from changes.formats.engine.format import Format
from daemon.config.pipeline_config import PipelineConfig
from daemon.state.dead_letters.files import FileLetters
from daemon.state.room import StateRoom
from sources.base.letter import LetterMaker
from sources.base.topics import LetterStore


def open_letters(
    pipeline: PipelineConfig, format_: Format, room: StateRoom | None = None
) -> LetterStore:
    """Files of the state directory, or a topic. Raises NotKept.

    The store keeps ``format_`` for itself. ``room``: see ``FileLetters``.
    """
    name, topic = pipeline.name, pipeline.section.dead_letter_topic
    maker = LetterMaker(name, format_, pipeline.source().reader())
    if topic is None:
        return FileLetters(pipeline.state_dir, name, maker, room=room)
    return pipeline.topics().letters(topic).store(name, maker)
