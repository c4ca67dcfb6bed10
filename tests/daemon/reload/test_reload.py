"""A reload of several pipelines: all get their new section, or all keep the old one."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future
from pathlib import Path

import pytest

from daemon.config.config import Config
from daemon.observe.log_level import LogLevels
from daemon.reload.reload import Reload, ReloadRefused, Running
from daemon.runtime.edits import Change, EditFailed, EditRefused
from offsets.position import TopicPartition
from offsets.recovery import Watermarks
from offsets.snapshot import Snapshot, SpillMark
from tests.daemon.page.documents import status
from tests.daemon.reload.test_difference import TEXT, read
from tests.daemon.source.fake_source import FakeSource

NEW = TEXT.replace('["shop.*"]', '["shop.a*"]').replace('["other.*"]', '["other.b*"]')


class Edits:
    """Carries out edits at once. ``fails``: pipelines whose next life does not start, as often as
    they are named."""

    def __init__(self, fails: Iterable[str] = (), spill: str | None = None) -> None:
        self.fails = list(fails)
        self.spill = spill
        self.made: list[str] = []

    def __call__(self, pipeline: str, change: Change) -> Future[None]:
        self.made.append(pipeline)
        done: Future[None] = Future()
        spills = {} if self.spill is None else {self.spill: SpillMark(9, {})}
        try:
            change(Snapshot(pipeline, f"binlogd-{pipeline}", spills=spills))
        except EditRefused as error:
            done.set_exception(error)
            return done
        if pipeline in self.fails:
            self.fails.remove(pipeline)
            done.set_exception(EditFailed(f"pipeline {pipeline} does not run: why"))
        else:
            done.set_result(None)
        return done


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    """What runs; the file says something else by now."""
    logs = {TopicPartition(topic, 0): Watermarks(0, 0) for topic in ("t", "u")}
    FakeSource(logs).opened(monkeypatch)
    found = read(tmp_path, TEXT)
    read(tmp_path, NEW)
    return found


def reload(config: Config, edits: Edits, *discard: str) -> Reload:
    (pipeline,) = status([])["pipelines"]
    document = {"pipelines": [pipeline | {"pipeline": name} for name in ("p", "q")]}
    return Reload(Running(config, lambda: document, tuple, edits, LogLevels("info")), discard)


def includes(config: Config) -> dict[str, list[str]]:
    return {name: section.include for name, section in config.pipeline.items()}


OLD_INCLUDES = {"p": ["shop.*"], "q": ["other.*"]}


def test_all_pipelines_get_their_new_section(config: Config) -> None:
    edits = Edits()
    lines = reload(config, edits).carry_out()
    assert includes(config) == {"p": ["shop.a*"], "q": ["other.b*"]}
    assert (edits.made, len(lines)) == (["p", "q"], 4)


def test_a_plan_changes_nothing(config: Config) -> None:
    edits = Edits()
    assert reload(config, edits).plan()[1].pipelines == ("p", "q")
    assert (edits.made, includes(config)) == ([], OLD_INCLUDES)


@pytest.mark.parametrize("fails", ["p", "q"])
def test_one_that_does_not_start_gets_all_their_old_sections(config: Config, fails: str) -> None:
    """Those that were changed are started again with what they had."""
    edits = Edits([fails])
    with pytest.raises(ReloadRefused, match=f"pipeline {fails} does not run: why; nothing was"):
        reload(config, edits).carry_out()
    assert includes(config) == OLD_INCLUDES
    assert edits.made == (["p", "p"] if fails == "p" else ["p", "q", "p", "q"])


def test_what_could_not_be_put_back_is_said(config: Config) -> None:
    """Never "nothing was changed" where something was."""
    with pytest.raises(ReloadRefused, match="and pipeline q does not run as before"):
        reload(config, Edits(["q", "q"])).carry_out()


def test_a_spill_that_only_the_record_knows_is_no_less_kept(config: Config) -> None:
    """Of a target that got no change in this run: the last look is at the snapshot itself."""
    edits = Edits(spill="lake.shop.zoo")
    with pytest.raises(ReloadRefused, match=r"lake.shop.zoo has no route any more"):
        reload(config, edits).carry_out()
    assert includes(config) == OLD_INCLUDES


def test_a_file_that_is_gone_changes_nothing(config: Config) -> None:
    assert config.file is not None
    config.file.unlink()
    with pytest.raises(ReloadRefused, match="can't be read"):
        reload(config, Edits()).carry_out()
