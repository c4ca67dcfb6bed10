"""What differs between two configurations, and what of it can't be changed while it runs. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from changes.model.model import TargetName
from changes.routes.routing import Router
from daemon.config.config import Config
from daemon.config.gates import tables_that_say
from daemon.config.owners import target_globs
from daemon.config.pipelines import PipelineSection
from settings.shell import quoted
from sources.opening import open_source

LIVE = frozenset({
    "include", "exclude", "target", "route", "mode", "write", "keys", "types", "ddl",
    "on_bad_record", "dead_letters", "dead_letter_retry_s", "max_bad_records_per_hour",
    "on_refused_target", "quarantine_bytes", "on_quarantine_full", "start", "quota", "load",
    "cut_every", "cuts", "counts", "expected_counts", "verify", "database", "databases",
    "retention_s", "away_after_s", "away_spill_bytes",
})  # fmt: skip
"""The keys of a pipeline that its next life takes. All others are built into what does not end
with it: the client's connection, the decoding processes, the group."""


@dataclass(frozen=True, slots=True)
class Difference:
    """``pipelines``: those that start again, since keys of theirs changed. ``added``, ``removed``:
    pipelines that come and go. ``level``: the log's new level. ``lines``: for people. ``restart``:
    what takes a restart, a line each."""

    pipelines: tuple[str, ...]
    added: tuple[str, ...]
    removed: tuple[str, ...]
    level: str | None
    lines: tuple[str, ...]
    restart: tuple[str, ...]

    @property
    def empty(self) -> bool:
        """Whether nothing differs."""
        return not self.lines and not self.restart


def difference(old: Config, new: Config) -> Difference:
    """Between what runs and what the file says now. Secrets are masked, so a rotated one is no
    difference: its users read it again."""
    was, now = _plain(old), _plain(new)
    lines, restart = list(_sections(was, now)), list(_restarts(was, now))
    changed = []
    for name in sorted(was["pipeline"].keys() & now["pipeline"].keys()):
        before, after = was["pipeline"][name], now["pipeline"][name]
        keys = [key for key in before if before[key] != after[key]]
        live = [key for key in keys if key in LIVE]
        restart += [f"pipeline.{name}.{key}" for key in keys if key not in LIVE]
        for key in live:
            lines += _changed(f"pipeline.{name}.{key}", before[key], after[key])
        if live or _says(old, name) != _says(new, name):
            changed.append(name)
    added = tuple(sorted(now["pipeline"].keys() - was["pipeline"].keys()))
    removed = tuple(sorted(was["pipeline"].keys() - now["pipeline"].keys()))
    lines += [f"- {line}" for name in removed for line in _whole(old, name)]
    lines += [f"+ {line}" for name in added for line in _whole(new, name)]
    level = new.log.level if new.log.level != old.log.level else None
    return Difference(tuple(changed), added, removed, level, tuple(lines), tuple(restart))


def _says(config: Config, pipeline: str) -> dict[str, tuple[str, ...]]:
    """The pipeline's tables that say through when gates have found them complete."""
    router = Router(config.routes(pipeline))
    return tables_that_say(config.gates, lambda name: router.reaches(TargetName.parse(name)))


def _plain(config: Config) -> dict[str, Any]:
    """The sections as JSON has them, without secrets."""
    found: dict[str, Any] = config.redactor.deep(config.model_dump(mode="json"))
    return found


def _sections(was: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    if was["log"]["level"] != now["log"]["level"]:
        yield from _changed("log.level", was["log"]["level"], now["log"]["level"])
    for name in sorted({*was["gates"], *now["gates"]}):
        before, after = was["gates"].get(name), now["gates"].get(name)
        if before != after:
            yield from _changed(f"gates.{name}", before, after)


def _restarts(was: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Sections that live as long as the process."""
    for section in was:
        if section in ("pipeline", "log", "gates"):
            continue
        before, after = was[section], now[section]
        if before != after:
            keys = sorted(k for k in {*before, *after} if before.get(k) != after.get(k))
            yield from (f"{section}.{key}" for key in keys)
    others = {k: v for k, v in was["log"].items() if k != "level"}
    yield from (f"log.{key}" for key, value in others.items() if now["log"][key] != value)


def _whole(config: Config, pipeline: str) -> Iterator[str]:
    """All that is set of a pipeline."""
    section = config.pipeline[pipeline].model_dump(mode="json", exclude_unset=True)
    for key, value in config.redactor.deep(section).items():
        yield f"pipeline.{pipeline}.{key} = {json.dumps(value, ensure_ascii=False)}"


def _changed(key: str, before: Any, after: Any) -> Iterator[str]:
    yield f"- {key} = {json.dumps(before, ensure_ascii=False)}"
    yield f"+ {key} = {json.dumps(after, ensure_ascii=False)}"


# What a person must know about tables that a reload adds: where their changes begin.


def notes(
    old: Config, new: Config, found: Difference, status: Mapping[str, Mapping[str, Any]]
) -> Iterator[str]:
    """Lines about what the log does not give to added tables. ``status``: the running pipelines'
    parts of the document. Raises NotAnswered, TopicMissing."""
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
    targets = " ".join(map(quoted, sorted(globs))) or "TARGET…"
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
    """The partitions whose log has lost its first records. Raises NotAnswered, TopicMissing."""
    source = open_source(config, pipeline)
    questions = source.questions()
    topics = sorted(source.topic_ids())
    begins = questions.begins(questions.partitions(topics))
    yield from (f"{place} {offset}" for place, offset in sorted(begins.items()) if offset)
    yield from (f"{topic} {said}" for topic, said in sorted(questions.compacted(topics).items()))
