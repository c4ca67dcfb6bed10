"""Which targets are compared with which: by the table of the source that they are of."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from changes.model.model import TableName, TargetName
from daemon.config.config import Config
from daemon.operations.engine.operation import parsed
from daemon.operations.engine.port import Plan
from daemon.operations.engine.record import JobRequest, new_job
from daemon.operations.verify.between.pairs import BETWEEN, LONE, UNFIT, tables_to
from daemon.operations.verify.between.plan import plan_between
from daemon.operations.verify.job.kind import VerifyKind
from daemon.operations.verify.job.operation import VerifyOperation
from daemon.operations.verify.report import table_result
from daemon.operations.verify.work import Table, Work
from daemon.state.edits import EditRefused
from offsets.position import TopicPartition
from offsets.snapshot import PartitionState, Snapshot, TargetMark

LANE = TopicPartition("shop", 0)
SINKS = {
    "lake": {"kind": "iceberg", "catalog": {"type": "hadoop", "warehouse": "/tmp/lake"}},
    "pg": {"kind": "jdbc", "url": "jdbc:postgresql://127.0.0.1:1/x", "user": "u"},
    "small": {"kind": "sqlite", "path": "/tmp/small"},
}
SINKS |= {"lake2": dict(SINKS["lake"]), "pg2": SINKS["pg"] | {"user": "other"}}
TWO = [
    {"tables": ["shop.*"], "target": "lake.{database}.{table}"},
    {"tables": ["shop.*"], "target": "pg.copy.{table}"},
]


@dataclass
class Recorded:
    """``Look``: by pipeline its routes, and the targets that are filled."""

    routes: dict[str, list[dict[str, Any]]]
    targets: dict[str, list[str]]
    kafka: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def config(self) -> Config:
        pipelines = {
            name: {"topics": ["shop"], "format": "canal-json", "route": routes}
            | ({"group": f"g-{name}", "kafka": self.kafka.get(name, {})})
            for name, routes in self.routes.items()
        }
        base = {"kafka": {"bootstrap.servers": "nowhere:1"}, "sink": SINKS, "pipeline": pipelines}
        return Config.model_validate({**base, "daemon": {"state_dir": "/tmp/none"}})

    def snapshot(self, pipeline: str) -> Snapshot:
        marks = {name: TargetMark("1", {LANE: 0}) for name in self.targets[pipeline]}
        return Snapshot(pipeline, "g", partitions={LANE: PartitionState(1)}, targets=marks)

    def plan(self, first: str, second: str, **asked: Any) -> Plan:
        return plan_between(self, "verify", first, second, asked)  # type: ignore[arg-type]


def one_pipeline(*targets: str) -> Recorded:
    return Recorded({"p": TWO}, {"p": list(targets)})


@pytest.mark.parametrize(
    ("first", "second"),
    [("lake", "pg"), ("lake.*", "pg.*"), ("lake.shop.*", "pg.copy.*")],
)
def test_targets_of_one_table_are_a_pair(first: str, second: str) -> None:
    """Of two sinks, or of two patterns. What only one has is named, and no table of no route."""
    look = one_pipeline(
        "lake.shop.a", "lake.shop.b", "lake.shop.only", "lake.binlogd.cuts", "pg.copy.a",
        "pg.copy.b", "pg.copy.mine",
    )  # fmt: skip
    plan = look.plan(first, second)
    (wanted,) = plan.wanted
    assert wanted.targets == ("lake.shop.a", "lake.shop.b")
    assert wanted.params["tables"] == ["shop.a", "shop.b"]
    assert [each["target"] for each in wanted.params[BETWEEN]] == ["pg.copy.a", "pg.copy.b"]
    lone = {one["target"]: one["why"] for one in wanted.params[LONE]}
    assert lone == {
        "lake.shop.only": f"{second} has no table of shop.only",
        "pg.copy.mine": f"{first} has no table of shop.mine",
    }
    assert "lake.shop.a: is compared with pg.copy.a" in plan.lines
    assert not plan.refusals
    assert not VerifyKind().wrong(wanted)


def test_what_can_t_be_compared_makes_the_result_unequal() -> None:
    """Beside pairs that are equal, too. What only one side has does not."""
    routes = [*TWO, {"tables": ["shop.b"], "target": "pg.more.{table}"}]
    targets = [
        "lake.shop.a",
        "lake.shop.b",
        "lake.shop.only",
        "pg.copy.a",
        "pg.copy.b",
        "pg.more.b",
    ]
    (wanted,) = Recorded({"p": routes}, {"p": targets}).plan("lake", "pg").wanted
    assert [one["target"] for one in wanted.params[LONE]] == ["lake.shop.only"]
    assert [one["target"] for one in wanted.params[UNFIT]] == ["lake.shop.b"]
    equal = table_result("lake.shop.a", "shop.a", Table(0), 0, between="pg.copy.a")
    job = replace(new_job(wanted, 0), memory=Work((equal,)).document())
    ended: Any = VerifyKind().step(job, Recorded({}, {}))  # type: ignore[arg-type]
    assert (ended.result["equal"], ended.result["skipped"]) == (False, 1)
    assert "name one of them" in ended.result["tables"][1]["skipped"]


def test_two_pipelines_over_one_topic() -> None:
    """A job is that of the pipeline that fills the first target."""
    look = Recorded({"p": TWO[:1], "q": TWO[1:]}, {"p": ["lake.shop.a"], "q": ["pg.copy.a"]})
    (wanted,) = look.plan("lake", "pg").wanted
    assert (wanted.pipeline, wanted.targets) == ("p", ("lake.shop.a",))
    assert wanted.params[BETWEEN] == [{"pipeline": "q", "target": "pg.copy.a"}]


@pytest.mark.parametrize(
    ("routes", "targets", "pair", "why"),
    [
        (TWO, ["lake.shop.a"], ("lake", "pg"), "pg: no target is called so"),
        (TWO, ["lake.shop.a", "pg.copy.b"], ("lake", "pg"), "pg has no table of shop.a"),
        (TWO, ["lake.shop.a"], ("lake.shop.a", "lake.shop.a"), "it is the same table on both"),
        (
            [*TWO, {"tables": ["shop.*"], "target": "pg.more.{table}"}],
            ["lake.shop.a", "pg.copy.a", "pg.more.a"], ("lake", "pg"),
            "2 targets are of shop.a: pg.copy.a and pg.more.a; name one of them",
        ),
        (
            [TWO[0], {"tables": ["shop.*"], "target": "pg.copy.all"}],
            ["lake.shop.a", "pg.copy.all"], ("lake", "pg"),
            "pg.copy.all: is not compared: several tables of the source lead to it",
        ),
        (
            [TWO[0], {**TWO[1], "mode": "append"}], ["lake.shop.a", "pg.copy.a"], ("lake", "pg"),
            "it is a changelog",
        ),
        (
            [TWO[0], {"tables": ["shop.*"], "target": "small.copy.{table}"}],
            ["lake.shop.a", "small.copy.a"], ("lake", "small"),
            "tables of sink small can't be read back: --between takes tables of a lake",
        ),
        (TWO, ["lake.old.a", "pg.copy.a"], ("lake.old.a", "pg"), "no route of pipeline p leads"),
    ],
)  # fmt: skip
def test_what_is_no_pair_is_refused_by_name(
    routes: list[dict[str, Any]], targets: list[str], pair: tuple[str, str], why: str
) -> None:
    plan = Recorded({"p": routes}, {"p": targets}).plan(*pair)
    assert not plan.wanted
    assert why in "; ".join(plan.refusals)


@pytest.mark.parametrize("sink", ["lake", "pg"])
def test_two_sinks_may_be_of_one_store(sink: str) -> None:
    """A table in it is equal to itself, whatever it holds; another one there is compared."""
    for other, why in (("shop", ""), ("copy", "it is the same table on both sides")):
        names = f"{sink}.copy", f"{sink}2.{other}"
        routes = [{"tables": ["shop.*"], "target": f"{name}.{{table}}"} for name in names]
        look = Recorded({"p": routes}, {"p": [f"{name}.a" for name in names]})
        plan = look.plan(sink, f"{sink}2")
        assert bool(plan.refusals) == bool(why)
        assert why in "".join(plan.refusals)


def test_pipelines_of_other_brokers_have_no_log_in_common() -> None:
    look = Recorded(
        {"p": TWO[:1], "q": TWO[1:]}, {"p": ["lake.shop.a"], "q": ["pg.copy.a"]},
        {"q": {"bootstrap.servers": "elsewhere:1"}},
    )  # fmt: skip
    assert "pipelines p and q read other brokers" in "".join(look.plan("lake", "pg").refusals)


def test_a_cut_of_a_pipeline_without_cuts_is_refused() -> None:
    look = one_pipeline("lake.shop.a", "pg.copy.a")
    with pytest.raises(EditRefused, match="makes no cuts"):
        look.plan("lake", "pg", cut=7)


def test_the_tables_that_lead_to_a_target() -> None:
    """By name where the routes say it; else any."""
    routes = Recorded({"p": [*TWO, {"tables": ["shop.x", "other.y*"], "target": "lake.one.t"}]},
                      {}).config.routes("p")  # fmt: skip
    named = list(tables_to(routes, TargetName("lake", "shop", "a")))
    assert named == [TableName("shop", "a")]
    assert set(tables_to(routes, TargetName("lake", "one", "t"))) == {TableName("shop", "x"), None}
    assert list(tables_to(routes, TargetName("lake", "other", "a"))) == []


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"targets": ["lake"]}, "--between compares two with each other"),
        ({"targets": ["lake", "pg", "x"]}, "--between compares two with each other"),
        ({"repair": True}, "not which of the two is right"),
        ({"partition": "day=2026-11-25"}, "--between compares whole tables"),
    ],
)
def test_what_does_not_go_together_is_refused(given: dict[str, Any], why: str) -> None:
    asked = {"targets": ["lake", "pg"], "between": True} | given
    with pytest.raises(EditRefused, match=why):
        parsed(VerifyOperation(), asked)


def test_a_job_with_a_broken_pair_is_refused() -> None:
    params: dict[str, Any] = {"tables": ["s.t"], "sample": 1}
    for others in ([], [{"target": "pg.s.t"}], [{"pipeline": "p", "target": "x"}], "x", 5):
        wanted = JobRequest("verify", "p", ("lake.s.t",), {**params, BETWEEN: others})
        assert '"between"' in "".join(VerifyKind().wrong(wanted)), others


def test_the_plan_of_the_command(tmp_path: Path) -> None:
    """Its two arguments are the sides, and nothing of the flag is a parameter of the job."""
    look: Any = one_pipeline("lake.shop.a", "pg.copy.a")
    params = parsed(VerifyOperation(), {"targets": ["lake", "pg"], "between": True, "sample": 0.5})
    (wanted,) = VerifyOperation().plan(params, look).wanted
    assert (wanted.params["sample"], wanted.params.get("repair")) == (0.5, False)
    assert isinstance(wanted.params[BETWEEN], list)
