"""What a person must know about tables that a reload adds: where their changes begin."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from daemon.config.config import Config
from daemon.config.owners import target_globs
from daemon.config.pipelines import PipelineSection
from daemon.reload.difference import Difference
from daemon.source.opening import open_source


def notes(
    old: Config, new: Config, found: Difference, status: Mapping[str, Mapping[str, Any]]
) -> Iterator[str]:
    """Lines about what the log does not give to added tables. ``status``: the running pipelines'
    parts of the document. Raises NotAnswered."""
    for name in found.pipelines:
        before = _globs(old.pipeline[name])
        added = {glob for glob in _globs(new.pipeline[name]) if not _covered(glob, before)}
        fewer = set(old.pipeline[name].exclude) - set(new.pipeline[name].exclude)
        begun = any(each["frontier"] for each in status[name]["partitions"])
        if (added or fewer) and begun:
            yield _note(name, new.pipeline[name], "begin where it stands", added)
    for name in found.added:
        section = new.pipeline[name]
        cut = list(_cut(new, name))
        if section.start.at != "earliest":
            yield _note(name, section, f'begin at start = "{section.start.at}"', _globs(section))
        elif cut:
            at = ", ".join(cut)
            said = f"begin where the log does, which is not whole any more ({at})"
            yield _note(name, section, said, _globs(section))


def _note(name: str, section: PipelineSection, where: str, globs: set[str]) -> str:
    targets = " ".join(f"'{glob}'" for glob in sorted(globs)) or "TARGET…"
    if section.load == "on-first-sight":
        way = 'load = "on-first-sight" brings each table\'s earlier rows'
    else:
        way = f"earlier rows come by `binlogd tables load {targets}`"
    return f"# pipeline.{name}: changes of added tables {where}; {way}"


def _globs(section: PipelineSection) -> set[str]:
    return {glob for route in section.routes() for glob in target_globs(route)}


def _covered(glob: str, others: set[str]) -> bool:
    """Whether another pattern surely takes all that this one takes."""
    plain = (other for other in others if not set("?[") & set(other))
    return glob in others or any(fnmatchcase(glob, other) for other in plain)


def _cut(config: Config, pipeline: str) -> Iterator[str]:
    """The partitions whose log has lost its first records."""
    source = open_source(config, pipeline)
    questions = source.questions()
    topics = config.pipeline[pipeline].topics
    begins = questions.begins(questions.partitions(topics))
    yield from (f"{place} {offset}" for place, offset in sorted(begins.items()) if offset)
    yield from (f"{topic} is compacted" for topic in sorted(questions.compacted(topics)))
