"""A daemon whose state directory comes to its bound: what grows by choice waits, nothing is lost,
and a release gives room again."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from settings.exit import Exit
from sources import opening
from tests.daemon.flow import Flow, Log
from tests.integration.rig import canal

MIB = 1 << 20
BOUNDED = """
    [pipeline.p]
    topics = ["t"]
    format = "canal-json"
    offset_stores = ["file"]
    on_bad_record = "dead-letter"
    on_refused_target = "quarantine"
    dead_letter_retry_s = 0.5
    target = "copy.{database}.{table}"
"""


class Bounded(Flow):
    def write(self, text: str) -> None:
        super().write(text)
        text = self.config.read_text()
        self.config.write_text(text.replace("[daemon]", '[daemon]\nstate_max_bytes = "1 MiB"'))


@pytest.fixture
def flow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Flow]:
    log = Log()
    monkeypatch.setitem(opening.ADAPTERS, "kafka", log.source)
    made = Bounded(tmp_path, log, BOUNDED)
    made.start()
    yield made
    if not made.ended_already():
        made.stop()


def insert(flow: Flow, table: str, *keys: int) -> None:
    """Rows of 100 kB whose names are equal."""
    for key in keys:
        row = {"id": key, "name": "x" * 100_000, "qty": key}
        flow.log.produce("t", canal(f"shop.{table}", "INSERT", [row]))


def sql(flow: Flow, statement: str) -> None:
    with sqlite3.connect(flow.folder / "copy.db", timeout=60) as file:
        file.execute(statement)
    file.close()


def condition(flow: Flow) -> Any:
    found = flow.ask("status")["conditions"]
    return next((one for one in found if one["kind"] == "state_full"), None)


def frontier(flow: Flow) -> int:
    """-1 while nothing is assigned."""
    found = [int(partition["frontier"]) for partition in flow.pipelines()["p"]["partitions"]]
    return next(iter(found), -1)


def test_a_spill_waits_at_the_bound_until_it_is_released(flow: Flow) -> None:
    """It is warned of before; the frontier passes nothing that is on no disk."""
    insert(flow, "a", 0)
    flow.applied("a", 1)
    sql(flow, 'CREATE UNIQUE INDEX one ON "shop.a" (name)')
    insert(flow, "a", *range(1, 10))
    flow.until(lambda: frontier(flow) == 10)
    filling = flow.until(lambda: condition(flow))
    assert "of 1.0 MiB (state_max_bytes): spills " in filling["line"]
    assert "no more spills" not in filling["line"]
    for key in range(10, 30):
        insert(flow, "a", key)
    full = flow.until(lambda: "no more spills" in condition(flow)["line"] and condition(flow))
    assert (full["level"], full["subject"]) == ("ill", "state_dir")
    assert full["runbook"].endswith("runbook/state-full.md")
    insert(flow, "a", *range(30, 40))
    flow.until(lambda: flow.pipelines()["p"]["messages_read"] == 40)
    assert flow.ask("status")["state_dir"]["parts"]["spills"] < 4 * MIB
    assert frontier(flow) < 40
    flow.stop()  # does not wait for room
    flow.start()
    sql(flow, "DROP INDEX one")
    flow.did("tables retry", target="copy.shop.a")
    flow.applied("a", 40)
    flow.until(lambda: frontier(flow) == 40)
    flow.until(lambda: condition(flow) is None)


def test_a_dead_letter_at_the_bound_stops_its_pipeline(flow: Flow) -> None:
    """Once its store has taken nothing for as long as it may; its record is read again."""
    insert(flow, "a", 0)
    flow.applied("a", 1)
    other = flow.folder / "state" / "jvm.log"
    other.write_bytes(b"\n" * (2 * MIB))
    flow.stop()
    flow.start()
    flow.log.produce("t", b"{bad")
    flow.until(lambda: flow.pipelines()["p"]["failure"])
    why = flow.pipelines()["p"]["failure"]
    assert "the dead-letter store has taken nothing for" in why
    assert "state_dir has come to its bound of 1,048,576 bytes (state_max_bytes)" in why
    flow.stop(Exit.PIPELINE_FAILED)
    other.unlink()
    flow.start()
    flow.until(lambda: frontier(flow) == 2)
    flow.until(lambda: flow.pipelines()["p"]["dead_letters"]["open"] == 1)
