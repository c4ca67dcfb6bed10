"""A reload of several pipelines: all get their new section, or all keep the old one."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future
from pathlib import Path

import pytest

from daemon.config.config import Config
from daemon.config.log_level import LogLevels
from daemon.operations.reload.reload import Reload, Running
from daemon.state.edits import Change, EditFailed, EditRefused, Fate
from offsets.position import TopicPartition
from offsets.recovery import Watermarks
from offsets.snapshot import Snapshot, SpillMark
from tests.daemon.admin.page.documents import status
from tests.daemon.operations.reload.test_difference import TEXT, read
from tests.sources.fake_source import FakeSource

NEW = TEXT.replace('["shop.*"]', '["shop.a*"]').replace('["other.*"]', '["other.b*"]')


class Edits:
    """Carries out edits at once. ``fails``: pipelines whose next life does not start, as often as
    they are named. ``made``: with what became of the pipeline, where it did not just run again."""

    def __init__(self, fails: Iterable[str] = (), spill: str | None = None) -> None:
        self.fails = list(fails)
        self.spill = spill
        self.made: list[str] = []

    def __call__(self, pipeline: str, change: Change, fate: Fate) -> Future[None]:
        self.made.append(pipeline if fate is Fate.RUNS_AGAIN else f"{pipeline} {fate.value}")
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


ADDED = TEXT[TEXT.index("[pipeline.q]") :].replace(".q]", ".r]").replace("other", "more")
RENAMED = TEXT.replace("[pipeline.q]", "[pipeline.r]")


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
    with pytest.raises(EditRefused, match=f"pipeline {fails} does not run: why; nothing was"):
        reload(config, edits).carry_out()
    assert includes(config) == OLD_INCLUDES
    assert edits.made == (["p", "p"] if fails == "p" else ["p", "q", "q", "p"])


def test_what_could_not_be_put_back_is_said(config: Config) -> None:
    """Never "nothing was changed" where something was."""
    with pytest.raises(EditRefused, match="and pipeline q does not run as before"):
        reload(config, Edits(["q", "q"])).carry_out()


def test_a_spill_that_only_the_record_knows_is_no_less_kept(config: Config) -> None:
    """Of a target that got no change in this run: the last look is at the snapshot itself."""
    edits = Edits(spill="lake.shop.zoo")
    with pytest.raises(EditRefused, match=r"lake.shop.zoo has no route any more"):
        reload(config, edits).carry_out()
    assert includes(config) == OLD_INCLUDES


def test_a_file_that_is_gone_changes_nothing(config: Config) -> None:
    assert config.file is not None
    config.file.unlink()
    with pytest.raises(EditRefused, match="can't be read"):
        reload(config, Edits()).carry_out()


def test_what_gives_something_up_comes_before_what_takes_it(config: Config) -> None:
    """The new pipeline feeds the targets of the one that goes, and none at the same time."""
    read(config_folder(config), RENAMED)
    edits = Edits()
    lines = reload(config, edits).carry_out()
    assert edits.made == ["q goes", "r begins"]
    assert includes(config) == {"p": ["shop.*"], "r": ["other.*"]}
    assert '- pipeline.q.topics = ["u"]' in lines
    assert '+ pipeline.r.topics = ["u"]' in lines


@pytest.mark.parametrize(
    ("fails", "made"),
    [("r", ["q goes", "r begins", "q begins"]), ("q", ["q goes", "q"])],
)
def test_a_pipeline_that_can_not_come_or_go_leaves_all_as_it_was(
    config: Config, fails: str, made: list[str]
) -> None:
    read(config_folder(config), RENAMED)
    edits = Edits([fails])
    with pytest.raises(EditRefused, match=f"pipeline {fails} does not run: why; nothing was"):
        reload(config, edits).carry_out()
    assert includes(config) == OLD_INCLUDES
    assert edits.made == made


def test_a_new_pipeline_begins_beside_those_that_run(config: Config) -> None:
    read(config_folder(config), TEXT + ADDED)
    edits = Edits()
    reload(config, edits).carry_out()
    assert edits.made == ["r begins"]


def test_a_target_that_wanders_between_pipelines_takes_two_reloads(config: Config) -> None:
    """Changed one after the other, both would own it for a moment."""
    moved = TEXT.replace('["shop.*"]', '["shop.*", "other.b"]').replace(
        '["other.*"]', '["other.c"]'
    )
    read(config_folder(config), moved)
    edits = Edits()
    with pytest.raises(EditRefused, match=r"pipeline\.p: takes what another pipeline still has"):
        reload(config, edits).carry_out()
    assert edits.made == []


def test_the_last_one_that_runs_is_not_removed(config: Config) -> None:
    """The process would end."""
    read(config_folder(config), TEXT.replace("[pipeline.q]", "[pipeline.r]").replace(".p]", ".s]"))
    with pytest.raises(EditRefused, match=r"pipeline\.p, pipeline\.q: removed, and no other"):
        reload(config, Edits()).plan()


def test_a_spill_of_a_pipeline_that_goes_is_kept_until_it_is_named(config: Config) -> None:
    """And then it stays on disk, for the day when the pipeline comes back."""
    read(config_folder(config), TEXT[: TEXT.index("[pipeline.q]")])
    with pytest.raises(EditRefused, match=r"pipeline q: lake.other.zoo is in quarantine; noth"):
        reload(config, Edits(spill="lake.other.zoo")).carry_out()
    assert includes(config) == OLD_INCLUDES
    reload(config, Edits(spill="lake.other.zoo"), "q").carry_out()
    assert includes(config) == {"p": ["shop.*"]}


def config_folder(config: Config) -> Path:
    assert config.file is not None
    return config.file.parent


def test_added_tables_whose_log_is_not_whole_are_told_with_the_load(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the log begins at 7 a new pipeline misses what was before."""
    logs = {TopicPartition("t", 0): Watermarks(0, 9), TopicPartition("u", 0): Watermarks(7, 9)}
    FakeSource(logs).opened(monkeypatch)
    read(config_folder(config), TEXT + ADDED)
    assert reload(config, Edits()).plan()[1].lines[-1] == (
        "# pipeline.r: changes of added tables begin where the log does, which is not whole any "
        "more (u:0 7); earlier rows come by `binlogd tables load 'lake.more.*'`"
    )


def test_added_tables_of_a_pipeline_that_runs_begin_where_it_stands(config: Config) -> None:
    read(config_folder(config), TEXT.replace('["shop.*"]', '["shop.*", "eu.*"]'))
    (line,) = (line for line in reload(config, Edits()).plan()[1].lines if line.startswith("#"))
    assert line == (
        "# pipeline.p: changes of added tables begin where it stands; earlier rows come by "
        "`binlogd tables load 'lake.eu.*'`"
    )


@pytest.mark.parametrize(("now", "told"), [("shop.o*", False), ("s*.*", True)])
def test_a_narrower_pattern_adds_nothing(config: Config, now: str, told: bool) -> None:
    read(config_folder(config), TEXT.replace('["shop.*"]', f'["{now}"]'))
    lines = reload(config, Edits()).plan()[1].lines
    assert any("added tables" in line for line in lines) == told
