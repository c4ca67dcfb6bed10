"""Notifications have Debezium's form."""

from __future__ import annotations

from dataclasses import replace

from daemon.operations.engine.record import Job, JobProgress, JobRequest, new_job
from daemon.operations.figures import notification

WANTED = JobRequest("load", "shop", ("lake.s.a", "lake.s.b"), {"tables": ["shop.a", "shop.b"]})
LOAD = new_job(WANTED, 0, "load-1")


def test_a_load_is_an_incremental_snapshot() -> None:
    """All members are texts, as Debezium's are."""
    assert notification(LOAD, "STARTED", {}, 1_695_817_046_353) == {
        "id": "load-1",
        "aggregate_type": "Incremental Snapshot",
        "type": "STARTED",
        "additional_data": {
            "connector_name": "shop",
            "job": "load-1",
            "data_collections": "shop.a, shop.b",
        },
        "timestamp": "1695817046353",
    }


def test_the_signals_id_is_repeated() -> None:
    """Whoever sent it finds what became of it."""
    job = replace(LOAD, wanted=replace(WANTED, signal="d139b9b7"))
    assert notification(job, "COMPLETED", {}, 0)["id"] == "d139b9b7"


def more(job: Job, type_: str, **data: str) -> dict[str, str]:
    found: dict[str, str] = notification(job, type_, data, 0)["additional_data"]
    return found


def test_each_type_has_the_members_that_debezium_gives_it() -> None:
    """Those of a scan are spelt otherwise there, too."""
    running = replace(LOAD, progress=JobProgress(50, 200))
    moving = more(running, "IN_PROGRESS", current_collection_in_progress="shop.a")
    assert moving["current_collection_in_progress"] == "shop.a"
    assert (moving["rows_done"], moving["rows_total"]) == ("50", "200")
    scanned = more(LOAD, "TABLE_SCAN_COMPLETED", scanned_collection="shop.a", status="SUCCEEDED")
    assert (scanned["data_collection"], scanned["status"]) == ("shop.a, shop.b", "SUCCEEDED")
    assert "data_collections" not in scanned
    assert more(LOAD, "COMPLETED") == {"connector_name": "shop", "job": "load-1"}
    assert more(LOAD, "ABORTED", reason="no key")["reason"] == "no key"


def test_another_kind_goes_by_its_name() -> None:
    """With its targets."""
    job = new_job(JobRequest("rebuild", "shop", ("lake.s.t",)), 0, "rebuild-1")
    found = notification(job, "STARTED", {}, 0)
    assert found["aggregate_type"] == "Rebuild"
    assert found["additional_data"]["data_collections"] == "lake.s.t"
