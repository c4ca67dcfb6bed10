"""Opens the store of dead letters that a pipeline's configuration names."""

from __future__ import annotations

from changes.formats.engine.format import Format
from daemon.config.config import Config
from daemon.state.dead_letters.files import FileLetters
from sources.base.letter import LetterMaker
from sources.base.topics import LetterStore
from sources.opening import open_source, open_topics


def open_letters(config: Config, pipeline: str, format_: Format) -> LetterStore:
    """Files of the state directory, or a topic. Raises NotKept.

    The store keeps ``format_`` for itself.
    """
    maker = LetterMaker(pipeline, format_, open_source(config, pipeline).reader())
    topic = config.pipeline[pipeline].dead_letter_topic
    if topic is None:
        return FileLetters(config.daemon.state_dir, pipeline, maker)
    return open_topics(config, pipeline).letters(topic).store(pipeline, maker)
