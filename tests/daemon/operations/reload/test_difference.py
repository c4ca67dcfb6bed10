"""What differs between the running configuration and the file, and what takes a restart."""

from __future__ import annotations

from pathlib import Path

import pytest

from daemon.config.config import Config
from daemon.config.file import load
from daemon.operations.reload.difference import difference

TEXT = """
[kafka]
"bootstrap.servers" = "h:1"
"sasl.password" = "${file:secret}"
[log]
level = "info"
[sink.lake]
kind = "sqlite"
path = "copy.db"
[pipeline.p]
topics = ["t"]
format = "canal-json"
include = ["shop.*"]
target = "lake.{database}.{table}"
[pipeline.q]
topics = ["u"]
format = "canal-json"
include = ["other.*"]
target = "lake.{database}.{table}"
"""


def read(folder: Path, text: str, secret: str = "the-first-secret") -> Config:
    (folder / "secret").write_text(secret)
    (folder / "c.toml").write_text(text)
    return load(folder / "c.toml")


def test_nothing_differs(tmp_path: Path) -> None:
    assert difference(read(tmp_path, TEXT), read(tmp_path, TEXT)).empty


@pytest.mark.parametrize(
    ("old", "new", "pipelines", "lines"),
    [
        ('include = ["shop.*"]', 'include = ["shop.*", "eu.*"]', ("p",),
         ['- pipeline.p.include = ["shop.*"]', '+ pipeline.p.include = ["shop.*", "eu.*"]']),
        ('include = ["other.*"]', 'include = ["other.*"]\non_refused_target = "quarantine"', ("q",),
         ['- pipeline.q.on_refused_target = "stop"',
          '+ pipeline.q.on_refused_target = "quarantine"']),
        ('include = ["other.*"]', 'include = ["other.*"]\ncounts = "lake.b.c"', ("q",),
         ["- pipeline.q.counts = null", '+ pipeline.q.counts = "lake.b.c"']),
        ('level = "info"', 'level = "debug"', (),
         ['- log.level = "info"', '+ log.level = "debug"']),
    ],
)  # fmt: skip
def test_what_may_change_is_shown_and_named(
    tmp_path: Path, old: str, new: str, pipelines: tuple[str, ...], lines: list[str]
) -> None:
    found = difference(read(tmp_path, TEXT), read(tmp_path, TEXT.replace(old, new)))
    assert (found.pipelines, list(found.lines), found.restart) == (pipelines, lines, ())


@pytest.mark.parametrize(
    ("old", "new", "restart"),
    [
        ('topics = ["u"]', 'topics = ["v"]', ["pipeline.q.topics"]),
        ('include = ["shop.*"]', 'include = ["shop.*"]\ntime_zone = "Asia/Tokyo"',
         ["pipeline.p.time_zone"]),
        ('"h:1"', '"h:2"', ["kafka.bootstrap.servers"]),
        ('"copy.db"', '"other.db"', ["sink.lake"]),
        ("[log]", "[daemon]\nprocessors = 7\n[log]", ["daemon.processors"]),
        ("[log]", '[log]\nformat = "json"', ["log.format"]),
    ],
)  # fmt: skip
def test_what_takes_a_restart_is_named(
    tmp_path: Path, old: str, new: str, restart: list[str]
) -> None:
    found = difference(read(tmp_path, TEXT), read(tmp_path, TEXT.replace(old, new)))
    assert list(found.restart) == restart


def test_pipelines_that_come_and_go_are_shown_whole(tmp_path: Path) -> None:
    """One that is renamed is another one: positions are kept by name."""
    new = TEXT.replace("[pipeline.q]", "[pipeline.r]")
    found = difference(read(tmp_path, TEXT), read(tmp_path, new))
    assert (found.added, found.removed, found.pipelines, found.restart) == (("r",), ("q",), (), ())
    of_q = ['topics = ["u"]', 'format = "canal-json"', 'include = ["other.*"]']
    of_q.append('target = "lake.{database}.{table}"')
    lines = [f"- pipeline.q.{line}" for line in of_q] + [f"+ pipeline.r.{line}" for line in of_q]
    assert list(found.lines) == lines


def test_a_pipeline_more_starts_no_other_one_again(tmp_path: Path) -> None:
    """What they may hold follows from who runs: nothing of it is set at their start."""
    more = TEXT + TEXT[TEXT.index("[pipeline.q]") :].replace(".q]", ".r]").replace("other", "more")
    found = difference(read(tmp_path, TEXT), read(tmp_path, more))
    assert (found.added, found.pipelines) == (("r",), ())
    back = difference(read(tmp_path, more), read(tmp_path, TEXT))
    assert (back.removed, back.pipelines) == (("r",), ())


def test_a_rotated_secret_is_no_difference_and_is_not_shown(tmp_path: Path) -> None:
    """Whoever uses it reads it again."""
    old, new = read(tmp_path, TEXT), read(tmp_path, TEXT, "the-second-secret")
    assert difference(old, new).empty
