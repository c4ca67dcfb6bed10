"""What is not well: each cause once, ill or passing, with the command that leads out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from daemon.admin.status.conditions import ConditionKey, headline
from daemon.admin.status.health import conditions, shown, verdict
from daemon.admin.status.runbook import runbook
from tests.daemon.admin.events.test_watch import ILL, WELL
from tests.daemon.admin.page.documents import failing, quarantined, status, target, writing


def test_each_cause_is_a_condition_of_what_it_is_of() -> None:
    """Each target, each job: the tenth quarantine is told as the first is."""
    assert conditions(WELL) == []
    found = {one.key: one for one in conditions(ILL)}
    assert set(found) == {
        ConditionKey("behind", "shop"),
        ConditionKey("dead_letters", "shop"),
        ConditionKey("quarantine", "shop", "lake.shop.shut"),
        ConditionKey("rows_may_differ", "shop", "lake.shop.old"),
        ConditionKey("job_failed", "shop", ILL["jobs"][0]["job"]),
        ConditionKey("targets_failing", "shop", "lake"),
    }
    of_sink = found[ConditionKey("targets_failing", "shop", "lake")]
    assert of_sink.targets == tuple(f"lake.shop.bad{n}" for n in range(5))
    assert of_sink.line.endswith("and 2 more: no space")
    assert "held by lake.shop.bad0" in found[ConditionKey("behind", "shop")].line


def test_a_job_that_failed_is_ill_until_it_is_made_good() -> None:
    """By a later one of its kind with all of its targets; a look at it leads nowhere."""
    (failed,) = (job for job in ILL["jobs"] if job["state"] == "failed")
    later = {**failed, "job": "later", "state": "done", "created_ms": failed["created_ms"] + 1}
    kinds = [
        [one.kind for one in conditions(WELL | {"jobs": [failed, other]})]
        for other in (
            later,
            later | {"state": "running", "targets": [*failed["targets"], "lake.shop.more"]},
            later | {"state": "cancelled"},
            later | {"created_ms": failed["created_ms"] - 1},
            later | {"kind": "verify"},
            later | {"targets": ["lake.shop.other"]},
        )
    ]
    assert kinds == [[], [], *4 * [["job_failed"]]]


def test_a_job_of_a_partition_makes_good_only_the_same() -> None:
    """A failed comparison of the whole table is not answered by one of a day."""
    (failed,) = (job for job in ILL["jobs"] if job["state"] == "failed")
    later = {**failed, "job": "later", "state": "done", "created_ms": failed["created_ms"] + 1}
    day, other = {"partition": "day=2026-11-25"}, {"partition": "day=2026-11-26"}
    pairs = [(failed, later | day), (failed | day, later | other)]
    pairs += [(failed | day, later | day), (failed | day, later)]
    kinds = [[one.kind for one in conditions(WELL | {"jobs": [*pair]})] for pair in pairs]
    assert kinds == [["job_failed"], ["job_failed"], [], []]


def test_a_full_spill_names_a_command_where_one_leads_out() -> None:
    """A target that is away is released by nothing but its sink."""
    kept = {"messages": 1, "bytes": 1, "full": True, "lanes": {}, "reason": "locked"}
    for state, command in (
        ({"quarantine": {**kept, "releasing": False}}, "binlogd tables retry lake.shop.t"),
        ({"away": {**kept, "seconds": 1.0, "catching_up": False}}, ""),
    ):
        (pipeline,) = WELL["pipelines"]
        one = pipeline["targets"][0] | {"target": "lake.shop.t"} | state
        found = conditions(WELL | {"pipelines": [pipeline | {"targets": [one]}]})
        assert [each.command for each in found if each.kind == "spill_full"] == [command]


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"failure": "why"}, "pipeline_failed"),
        ({"broker_unreachable_seconds": 121.0}, "broker_unreachable"),
        ({"offset_file": {"error": "full", "saved_seconds_ago": 9}}, "offset_store_failing"),
        ({"dead_letters": {"error": "full", "stored": 0, "open": 0, "waiting": 1}},
         "dead_letter_store_failing"),
        ({"topics_gone": ["t1", "t2", "t3", "t4"], "topics_gone_count": 4}, "topics_gone"),
    ],
)  # fmt: skip
def test_what_holds_a_pipeline_up(change: dict[str, Any], kind: str) -> None:
    (pipeline,) = WELL["pipelines"]
    (found,) = conditions(WELL | {"pipelines": [pipeline | change]})
    assert (found.key, found.level) == ((kind, "shop", ""), "ill")


def test_a_log_that_is_cut_soon_a_jvm_that_is_away_an_actor_that_is_stuck() -> None:
    (pipeline,) = WELL["pipelines"]
    part = pipeline["partitions"][0] | {"retention_seconds": 100.0, "retention_left_seconds": 49.0}
    found = conditions(
        WELL
        | {"pipelines": [pipeline | {"partitions": [part]}]}
        | {"spark": WELL["spark"] | {"down_seconds": 121.0}}
        | {"silent": [{"actor": "shop/fetcher", "seconds": 130.0, "stuck": True}]}
    )
    keys = [("stuck", "", "shop/fetcher"), ("jvm_down", "", ""), ("retention", "shop", "")]
    assert [one.key for one in found] == keys


@pytest.mark.parametrize(
    "change",
    [
        {"stage": "starting"},
        {"assigned": False},
        {"held": True},
        {"paused": True},
        {"lag_seconds": 301.0},
        {"broker_unreachable_seconds": 119.0},
        {"log_ends_unknown_seconds": 119.0},
        {"formats_awaited": {"t": 4}},
        {"paused_by_a_person": {"seconds": 60.0, "since_ms": 0, "reason": "why"}},
    ],
)
def test_what_passes_by_itself_is_neither_well_nor_ill(change: dict[str, Any]) -> None:
    """A start, a catch-up, ordinary back-pressure, a pause: no green, no red."""
    (pipeline,) = WELL["pipelines"]
    level, line = headline(conditions(WELL | {"pipelines": [pipeline | change]}))
    assert level == "passing"
    assert line.startswith("pipeline shop: ") or line.startswith("t: ")


AWAITED = {"t": {"messages": 4, "schemas": ["id 7"]}}


@pytest.mark.parametrize(
    ("away_s", "awaited", "kind", "level"),
    [
        (121.0, AWAITED, "registry_away", "ill"),
        (119.0, AWAITED, "registry_away", "passing"),
        (9999.0, {}, "registry_away", "passing"),
        (None, AWAITED, "schema_awaited", "passing"),
    ],
)  # fmt: skip
def test_a_registry_that_is_away_is_ill_where_messages_wait_for_it(
    away_s: float | None, awaited: dict[str, Any], kind: str, level: str
) -> None:
    """With all schemas on the disk its absence holds nothing up."""
    (pipeline,) = WELL["pipelines"]
    change = {"registry_away_seconds": away_s, "registry_error": "down", "schemas_awaited": awaited}
    (found,) = conditions(WELL | {"pipelines": [pipeline | change]})
    assert (found.kind, found.level, found.seconds) == (kind, level, away_s)
    assert ("4 messages of t wait for schema id 7" in found.line) == bool(awaited)


def test_what_has_no_room_is_not_well() -> None:
    """A page said in green that all is well, over a budget that is used up."""
    (pipeline,) = WELL["pipelines"]
    held = pipeline | {"held": True, "lag_messages": 240_500}
    assert headline(conditions(WELL | {"pipelines": [held]}))[0] == "passing"
    assert headline(conditions(WELL)) == (None, "all is well")
    assert conditions(status([writing("lake.shop.t", 3)])) == []


def test_fifteen_targets_of_one_full_disk_are_one_condition() -> None:
    """Of each sink; a quarantine is each target's own, and has its command."""
    found = [failing(f"lake.shop.t{n:02}", "no space") for n in range(15)]
    found += [failing("other.shop.t", "no space"), target("lake.shop.well", 5)]
    found += [quarantined(f"lake.shop.shut{n}", "why") for n in range(2)]
    every = conditions(status(found))
    assert [(one.key.kind, one.subject, len(one.targets)) for one in every] == [
        ("quarantine", "lake.shop.shut0", 1),
        ("quarantine", "lake.shop.shut1", 1),
        ("targets_failing", "lake", 15),
        ("targets_failing", "other", 1),
    ]
    assert every[0].command == "binlogd tables retry lake.shop.shut0"


def test_a_credential_that_ends_soon_is_told() -> None:
    """As the alert does; one that ends next year is not."""
    ends = [WELL["time_ms"] + days * 86_400_000 for days in (-1, 13, 15)]
    credentials = [{"credential": f"c{n}", "expires_ms": at} for n, at in enumerate(ends)]
    found = conditions(WELL | {"credentials": credentials})
    assert [(one.subject, one.line) for one in found] == [
        ("c0", "has ended"),
        ("c1", "ends in 13 d"),
    ]


@pytest.mark.parametrize(
    "change",
    [
        {"failure": "why", "stage": "ended"},
        {"stage": "ended"},
        {"stage": "draining"},
        {"assigned": False},
        {"log_ends_unknown_seconds": 1.0},
    ],
)
def test_a_pipeline_that_does_not_read_is_not_ready(change: dict[str, Any]) -> None:
    """Whatever the others do; /readyz names it."""
    (pipeline,) = WELL["pipelines"]
    found = WELL | {"pipelines": [pipeline, pipeline | {"pipeline": "other", **change}]}
    found["conditions"] = [one.document() for one in conditions(found)]
    good, lines = verdict("/readyz", found)
    assert not good
    assert [line.partition(":")[0] for line in lines] == ["running", "pipeline other"]
    assert verdict("/healthz", found) == (True, ["ok"])


def test_a_document_of_a_newer_daemon_is_read() -> None:
    """A condition may have further members, and the document of an older one has none."""
    newer = [one.document() | {"further": 1} for one in conditions(ILL)]
    linked = [replace(one, runbook=runbook(one.kind)) for one in conditions(ILL)]
    assert shown(ILL | {"conditions": newer}) == linked
    assert shown({k: v for k, v in ILL.items() if k != "conditions"}) == conditions(ILL)


@pytest.mark.parametrize(
    ("held", "bounded", "line"),
    [
        (7 << 20, True, None),
        (
            8 << 20, True,
            "holds 8.0 MiB of 10.0 MiB (state_max_bytes): spills 7.0 MiB, jobs 1.0 MiB",
        ),
        (
            8 << 20, False,
            "holds 8.0 MiB of 10.0 MiB (what its disk has room for): spills 7.0 MiB, jobs 1.0 MiB",
        ),
        (
            10 << 20, True,
            "holds 10.0 MiB of 10.0 MiB (state_max_bytes): spills 9.0 MiB, jobs 1.0 MiB; no more "
            "spills and dead letters are taken, what needs them waits",
        ),
    ],
)  # fmt: skip
def test_a_state_directory_that_fills_is_told_before_it_is_full(
    held: int, bounded: bool, line: str | None
) -> None:
    """With the parts that hold most."""
    parts = {"jobs": 1 << 20, "spills": held - (1 << 20)}
    state = {"parts": parts, "limit_bytes": 10 << 20, "bounded": bounded}
    found = [one for one in conditions(WELL | {"state_dir": state}) if one.kind == "state_full"]
    assert [(one.line, one.who) for one in found] == ([] if line is None else [(line, "state_dir")])
    assert conditions(WELL | {"state_dir": None}) == []
