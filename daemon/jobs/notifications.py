"""Notifications of jobs, in the form of Debezium's: what tools for that form read. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from daemon.jobs.record import Job

AGGREGATES = {"load": "Incremental Snapshot"}
"""Debezium's word for what a kind does; a kind that Debezium lacks goes by its own name."""


def notification(job: Job, type_: str, data: Mapping[str, str], unix_ms: int) -> dict[str, Any]:
    """One notification. ``id`` is the signal's where one asked for the job, else the job's.

    ``additional_data`` holds texts alone, as Debezium's does.
    """
    wanted = job.wanted
    collections = ", ".join(map(str, wanted.params.get("tables") or wanted.targets))
    more: dict[str, str] = {"connector_name": wanted.pipeline, "job": job.id}
    if type_ not in ("COMPLETED", "ABORTED"):
        # Debezium's own spelling differs for this one.
        name = "data_collection" if type_ == "TABLE_SCAN_COMPLETED" else "data_collections"
        more[name] = collections
    if type_ == "IN_PROGRESS":
        more["rows_done"] = str(job.progress.done)
        if job.progress.total is not None:
            more["rows_total"] = str(job.progress.total)
    return {
        "id": wanted.signal or job.id,
        "aggregate_type": AGGREGATES.get(wanted.kind, wanted.kind.capitalize()),
        "type": type_,
        "additional_data": {**more, **data},
        "timestamp": str(unix_ms),
    }
