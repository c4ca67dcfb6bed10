"""A daemon with two files of SQLite, of which one is locked for a while: the other's rows come as
ever, and the locked one catches up by itself, over a restart, too."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from actors.contract.messages import GOES_ON_ALONE
from daemon.cli.tables import list_tables
from daemon.config.file import load
from sources import opening
from tests.daemon.flow import Flow, Log

TWO = """
    [sink.other]
    kind = "sqlite"
    path = "other.db"
    write_timeout_s = 0.3
    [pipeline.p]
    topics = ["t"]
    format = "canal-json"
    offset_stores = ["file"]
    away_after_s = 0.5
    [[pipeline.p.route]]
    target = "copy.{database}.{table}"
    [[pipeline.p.route]]
    target = "other.{database}.{table}"
"""


@pytest.fixture
def flow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Flow]:
    log = Log()
    monkeypatch.setitem(opening.ADAPTERS, "kafka", log.source)
    made = Flow(tmp_path, log, TWO)
    made.start()
    yield made
    made.stop()


@contextmanager
def locked(flow: Flow) -> Iterator[None]:
    """Nobody else can write the second file."""
    file = sqlite3.connect(flow.folder / "other.db", isolation_level=None)
    file.execute("BEGIN IMMEDIATE")
    yield
    file.execute("ROLLBACK")
    file.close()


def other(flow: Flow) -> Any:
    """The status of the second file's table."""
    targets = flow.pipelines()["p"].get("targets", ())
    return next((t for t in targets if t["target"] == "other.shop.a"), None)


def away(flow: Flow) -> Any:
    """What is kept for it, None while it is not away."""
    found = other(flow)
    return found and found["away"]


def frontier(flow: Flow) -> int:
    (partition,) = flow.pipelines()["p"]["partitions"]
    return int(partition["frontier"])


def rows_of_other(flow: Flow) -> list[int]:
    with sqlite3.connect(flow.folder / "other.db") as file:
        found = file.execute('SELECT id FROM "shop.a" ORDER BY 1').fetchall()
    file.close()
    return [row[0] for row in found]


def test_the_other_goes_on_and_it_catches_up_by_itself(
    flow: Flow, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is kept for it counts as done; a restart finds it; in the end both have all."""
    flow.insert("t", "a", 10)
    flow.applied("a", 10)
    flow.until(lambda: rows_of_other(flow) == [*range(1, 11)])
    with locked(flow):
        flow.insert("t", "a", 10)
        flow.applied("a", 20)
        flow.insert("t", "a", 10)
        kept = flow.until(lambda: away(flow))
        assert kept["reason"].startswith("its sink has not answered for ")
        flow.insert("t", "a", 100)
        flow.applied("a", 130)
        flow.until(lambda: frontier(flow) == 130)
        assert other(flow)["phase"] == "away"
        assert other(flow)["quarantine"] is None
        flow.stop()
        flow.start()
        assert flow.until(lambda: away(flow))["messages"] == 120
        flow.insert("t", "a", 10)
        flow.applied("a", 140)
        assert rows_of_other(flow) == [*range(1, 11)]
        list_tables(load(flow.config), Console(width=200), as_json=False)
        assert "away" in capsys.readouterr().out
    flow.until(lambda: rows_of_other(flow) == [*range(1, 141)])
    flow.until(lambda: away(flow) is None)
    flow.insert("t", "a", 10)
    flow.until(lambda: rows_of_other(flow) == [*range(1, 151)])
    assert not list(flow.folder.glob("state/p.spill/*.spill"))


def test_a_paused_target_is_listed_before_a_change_opens_it(
    flow: Flow, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the running daemon's answer."""
    flow.did("pause", name="copy.shop.a")
    capsys.readouterr()
    assert list_tables(load(flow.config), Console(width=200), as_json=True) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["pipeline"], row["target"], row["phase"]) == ("p", "copy.shop.a", "paused")


def test_a_retry_of_one_that_is_away_says_the_same_as_its_dry_run(flow: Flow) -> None:
    """It goes on by itself, and nothing but its sink leads out."""
    flow.insert("t", "a", 10)
    flow.applied("a", 10)
    flow.until(lambda: rows_of_other(flow) == [*range(1, 11)])
    with locked(flow):
        flow.insert("t", "a", 10)
        flow.applied("a", 20)
        flow.insert("t", "a", 10)
        flow.until(lambda: away(flow))
        name, said = "other.shop.a", {False: (0, "x"), True: (0, "x")}
        for act in said:
            found = flow.ask("operation", name="tables retry", params={"target": name}, act=act)
            said[act] = (found["status"], found["said"][0][1])
        assert said[False] == said[True] == (2, f"{name} {GOES_ON_ALONE}")
