"""Two tables whose names lead to one target, on the real broker and Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from settings.exit import Exit
from tests.integration.rig import Rig, canal, ddl


def config(rig: Rig, **more: object) -> Path:
    include = [f"{rig.db}.*", f"{rig.db}_eu.*"]
    target = f"lake.{rig.db}.{{database}}_{{table}}"
    return rig.write_config(p=rig.pipeline(include=include, target=target, **more))


def first_row(rig: Rig) -> None:
    """A row of ``shop.eu_orders``, in its target after a run."""
    rig.produce(canal(f"{rig.db}.eu_orders", "INSERT", [{"id": 1, "name": "a", "qty": 1}]))
    assert rig.run(config(rig)) is Exit.OK


@pytest.mark.parametrize("what", ["rows", "truncate"])
def test_the_second_table_stops_and_leaves_the_first_alone(rig: Rig, what: str) -> None:
    """After a restart too, when nothing of the first one is read: the target knows. Left out by
    its name, the rest goes on."""
    first_row(rig)
    second, target = f"{rig.db}_eu.orders", f"{rig.db}_eu_orders"
    rows = canal(second, "INSERT", [{"id": 1, "name": "other", "qty": 2}])
    rig.produce(ddl(second, "TRUNCATE", "TRUNCATE TABLE orders") if what == "truncate" else rows)
    assert rig.run(config(rig)) is Exit.PIPELINE_FAILED
    assert f"{rig.db}.eu_orders, and {second} leads to the same target" in rig.stderr
    assert rig.rows(target) == [(1, "a", 1)]
    rig.produce(canal(f"{rig.db}.eu_orders", "INSERT", [{"id": 2, "name": "b", "qty": 1}]))
    assert rig.run(config(rig, exclude=[second])) is Exit.OK
    assert rig.rows(target) == [(1, "a", 1), (2, "b", 1)]


def test_in_quarantine_nothing_is_lost_or_mixed(rig: Rig) -> None:
    """The target's messages are spilled, of whichever table; other targets go on."""
    first_row(rig)
    second, target = f"{rig.db}_eu.orders", f"{rig.db}_eu_orders"
    rig.produce(
        canal(second, "INSERT", [{"id": 1, "name": "other", "qty": 2}]),
        canal(f"{rig.db}.eu_orders", "INSERT", [{"id": 2, "name": "b", "qty": 1}]),
        canal(f"{rig.db}.items", "INSERT", [{"id": 1, "name": "i", "qty": 1}]),
    )
    quarantine = {"on_refused_target": "quarantine"}
    assert rig.run(config(rig, **quarantine)) is Exit.OK
    assert rig.rows(target) == [(1, "a", 1)]
    assert rig.rows(f"{rig.db}_items") == [(1, "i", 1)]
    (event,) = rig.events("quarantined")
    assert f"{rig.db}.eu_orders, and {second}" in event["reason"]
