"""Metrics of thousands of targets and partitions: bounded, the ill ones first, the rest counted."""

from __future__ import annotations

from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from daemon.admin.status.metrics import StatusCollector
from tests.daemon.admin.page.documents import failing, quarantined, status, target

CALM = [target(f"lake.s.t{n:02}", n) for n in range(30)]


def scraped(found: Any, most: int) -> dict[str, list[tuple[dict[str, str], float]]]:
    """By metric the labels and values of its series."""
    registry = CollectorRegistry()
    registry.register(StatusCollector(lambda: found, most))
    families = text_string_to_metric_families(generate_latest(registry).decode())
    samples = [sample for family in families for sample in family.samples]
    names = {sample.name for sample in samples}
    return {n: [(s.labels, s.value) for s in samples if s.name == n] for n in names}


def test_ill_targets_keep_their_series_and_the_others_are_counted() -> None:
    """An alert must see what it is for, whatever its name."""
    ill = [failing("lake.s.x", "no space left"), quarantined("lake.s.z", "why")]
    found = scraped(status([*CALM, *ill]), 5)
    names = [labels["target"] for labels, _ in found["binlogd_target_failing"]]
    assert len(names) == 5
    assert names == sorted(names)
    assert {"lake.s.x", "lake.s.z"} <= {*names}
    assert [value for _, value in found["binlogd_pipeline_targets_not_shown"]] == [27]
    assert {labels["target"] for labels, _ in found["binlogd_target_rows_read_total"]} == {*names}


def test_the_partition_that_loses_records_soonest_keeps_its_series() -> None:
    """The others by how far they are behind."""
    found = status(CALM)
    (pipeline,) = found["pipelines"]
    (part,) = pipeline["partitions"]
    pipeline["partitions"] = [{**part, "source": f"shop:{n}"} for n in range(30)]
    pipeline["partitions"][20] |= {"retention_left_seconds": 60.0}
    pipeline["partitions"][25] |= {"lag_messages": 9}
    series = scraped(found, 2)
    shown = [labels["partition"] for labels, _ in series["binlogd_partition_frontier_offset"]]
    assert shown == ["shop:20", "shop:25"]
    assert [value for _, value in series["binlogd_pipeline_partitions_not_shown"]] == [28]


def test_marks_beyond_the_bound_are_left_out() -> None:
    """They are as many as tables."""
    found = status(CALM)
    found["pipelines"][0] |= {"rows_may_differ": {f"lake.s.t{n:02}": "why" for n in range(30)}}
    assert len(scraped(found, 4)["binlogd_target_rows_may_differ"]) == 4


def test_topics_that_are_gone_are_counted() -> None:
    """The document names some of them."""
    found = status(CALM)
    found["pipelines"][0] |= {"topics_gone_count": 2_000}
    assert [value for _, value in scraped(found, 4)["binlogd_topics_gone"]] == [2_000]
