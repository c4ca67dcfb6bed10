"""Asking real actors, one of them stuck in a call; and the document made of their answers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pykka
import pytest
from rich.console import Console

from actors.committer.rule import CommitterLogic
from actors.contract.addresses import Address
from actors.contract.effects import Consume
from actors.contract.figures import FetcherFigures, Figures, ProcessorFigures
from actors.contract.messages import Assigned, EpochStarted, Polled, SourceState
from actors.fetcher.rule import FetcherLogic
from actors.fetcher.settings import FetcherSettings
from actors.runtime.lending import Fixed
from actors.runtime.mailbox import DataQueue, Mailbox, Tick
from actors.runtime.shell import Directory, Shell
from actors.target.buffer import TargetBuffer
from actors.target.shown import figures
from changes.formats import FORMATS
from changes.model.model import FormatOptions, Mode, TargetName
from changes.routes.routing import Router, TargetRoute
from daemon.admin.status.health import verdict
from daemon.admin.status.metrics import StatusCollector
from daemon.admin.status.observer import SUPERVISOR, Answers, Observer
from daemon.admin.status.status import About, LifeFigures, document
from daemon.admin.status.status_table import print_status
from daemon.admin.status.words import duration, size
from offsets.position import TopicPartition
from offsets.recovery import Watermarks
from offsets.snapshot import Snapshot, TargetMark
from sources.base.log_figures import LogFigures

FETCHER = Address("p", "fetcher")
SOURCE = TopicPartition("t", 0)


class StalledSource:
    """A poll that does not return."""

    def __init__(self) -> None:
        self.polling = threading.Event()
        self.release = threading.Event()

    def __call__(self, effect: Any) -> object | None:
        if isinstance(effect, Consume):
            self.polling.set()
            self.release.wait(30)
            return Polled()
        return None


class Clock:
    """A second hand that a test moves."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def fetcher() -> Iterator[tuple[Directory, Mailbox, StalledSource]]:
    """A real fetcher actor whose source hangs as soon as it polls."""
    logic = FetcherLogic(
        "p", FORMATS["canal-json"](FormatOptions()), Router([]), 0, FetcherSettings()
    )
    directory, mailbox, source = Directory(), Mailbox(DataQueue(Fixed(0))), StalledSource()
    directory.add_mailbox(FETCHER, mailbox)
    ref = Shell.start(FETCHER, logic, mailbox, directory, lambda run: source)
    directory.add_ref(FETCHER, ref)
    yield directory, mailbox, source
    source.release.set()
    ref.stop(timeout=10)


def test_a_fetcher_stuck_in_its_poll_is_named_with_since_when(
    fetcher: tuple[Directory, Mailbox, StalledSource],
) -> None:
    """Its last answer stays; once it goes on, it owes nothing."""
    directory, mailbox, source = fetcher
    clock = Clock()
    observer = Observer(clock)
    observer.watch({FETCHER: lambda: directory.question(FETCHER, Figures())})
    while FETCHER not in (replies := observer.look().replies):
        clock.now += 1
    assert isinstance(replies[FETCHER], FetcherFigures)
    mailbox.tell(Tick())
    assert source.polling.wait(10)
    clock.now += 10
    observer.look()
    clock.now += 30
    answers = observer.look()
    assert answers.silent == {FETCHER: 30.0}
    assert FETCHER in answers.replies
    found = document(ABOUT, answers, 0, 1.0)
    assert (found["healthy"], found["silent"][0]["actor"]) == (False, "p/fetcher[0]")
    source.release.set()
    owed, _ = observer._owed[FETCHER]
    owed.get(timeout=10)
    clock.now += 1
    assert observer.look().silent == {}


def test_an_actor_that_has_ended_owes_nothing() -> None:
    """Its pipeline has ended, or its crash ends the process."""
    dead: pykka.Future[object] = pykka.ThreadingFuture()

    def question() -> pykka.Future[object]:
        try:
            raise pykka.ActorDeadError("gone")
        except pykka.ActorDeadError:
            dead.set_exception()
        return dead

    observer = Observer()
    observer.watch({FETCHER: question})
    assert observer.look() == Answers({}, {})


ENDS = {"p": LogFigures({SOURCE: 100}, None, None)}
ABOUT = About(run="r", pid=1, groups={"p": "g"}, processors=1, stuck_after_s=20.0)


def answered(logic: Any) -> Any:
    (reply,) = logic.handle(Figures(), 50.0)
    return reply.value


def replies() -> dict[Address, object]:
    fetcher = FetcherLogic(
        "p", FORMATS["canal-json"](FormatOptions()), Router([]), 1, FetcherSettings()
    )
    fetcher.handle(Assigned({SOURCE: 0}, {SOURCE: Watermarks(0, 10)}), 0.0)
    fetcher.handle(Polled(state=SourceState(connected=False)), 20.0)
    committer = CommitterLogic("p", Snapshot("p", "g"), 5.0, None)  # type: ignore[arg-type]
    from actors.contract.messages import Dispatched

    committer.handle(EpochStarted(1, SOURCE, 0, 10, None), 0.0)
    lanes = {"lake.s.a": (5, 30), "lake.s.b": (12, 39)}
    committer.handle(Dispatched(1, SOURCE, 40, lanes, 1_000), 0.0)
    return {FETCHER: answered(fetcher), Address("p", "committer"): answered(committer)}


def test_lag_counts_from_the_frontier_to_the_live_end() -> None:
    """What is read and not applied, and what is not read yet; its age is the oldest message's."""
    (pipeline,) = document(ABOUT, Answers(replies()), 61_000, 1.0, None, ENDS)["pipelines"]
    (partition,) = pipeline["partitions"]
    assert (partition["lag_messages"], partition["lag_seconds"]) == (95, 60.0)
    assert partition["unapplied_messages"] == 35
    assert partition["held_by"] == {"target": "lake.s.a", "offset": 5, "messages": 7}
    assert pipeline["broker_unreachable_seconds"] == 30.0


def test_without_the_logs_end_lag_is_unknown_and_no_zero() -> None:
    """In the document, for people, and in the metrics, which leave it out."""
    unknown = {"p": LogFigures({}, 12.0, "no answer")}
    found = document(ABOUT, Answers(replies()), 61_000, 1.0, None, unknown)
    (pipeline,) = found["pipelines"]
    (partition,) = pipeline["partitions"]
    assert (pipeline["lag_messages"], partition["log_end"], partition["lag_messages"]) == (
        None, None, None,
    )  # fmt: skip
    # What is pending is that old wherever the log ends.
    assert (pipeline["lag_seconds"], partition["lag_seconds"]) == (60.0, 60.0)
    console = Console(width=160, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    print_status(console, found)
    text = console.export_text()
    assert "lag unknown, at least 60 s" in text
    assert "the logs' ends are unknown for 12 s: no answer" in text
    samples = {s.name: s.value for m in StatusCollector(lambda: found).collect() for s in m.samples}
    assert "binlogd_pipeline_lag_messages" not in samples
    assert samples["binlogd_pipeline_log_ends_unknown_seconds"] == 12.0


def running(replies: dict[Address, object]) -> Answers:
    return Answers({**replies, SUPERVISOR: LifeFigures({"p": "running"}, {}, stopping=False)})


def test_a_pipeline_whose_logs_end_is_unknown_is_not_ready() -> None:
    """``/readyz`` names it, with why."""
    answers = running(replies())
    assert document(ABOUT, answers, 0, 1.0, None, ENDS)["ready"]
    unknown = {"p": LogFigures({}, 12.0, "no answer")}
    found = document(ABOUT, answers, 0, 1.0, None, unknown)
    assert verdict("/readyz", found) == (
        False,
        ["running", "pipeline p: the logs' ends are unknown for 12 s: no answer"],
    )


def test_a_pipeline_that_does_not_read_has_no_lag_of_zero() -> None:
    """It has ended, or waits for its partitions: how far it is behind nobody knows."""
    ended = Answers({SUPERVISOR: LifeFigures({"p": "ended"}, {"p": "x"}, stopping=False)})
    (pipeline,) = document(ABOUT, ended, 0, 1.0, None, ENDS)["pipelines"]
    assert (pipeline["lag_messages"], pipeline["lag_seconds"]) == (None, None)
    logic = FetcherLogic(
        "p", FORMATS["canal-json"](FormatOptions()), Router([]), 1, FetcherSettings()
    )
    waits = running({FETCHER: answered(logic)})
    (pipeline,) = document(ABOUT, waits, 0, 1.0, None, ENDS)["pipelines"]
    assert pipeline["lag_messages"] is None
    logic.handle(Assigned({}, {}), 0.0)  # others of the group have them all
    none = running({FETCHER: answered(logic)})
    (pipeline,) = document(ABOUT, none, 0, 1.0, None, ENDS)["pipelines"]
    assert (pipeline["lag_messages"], pipeline["lag_seconds"]) == (0, 0.0)


def test_before_the_actors_run_the_document_is_whole() -> None:
    """Scrapers and people see the same members from the first second."""
    found = document(ABOUT, Answers(), 0, 1.0)
    assert (found["state"], found["ready"], found["healthy"]) == ("starting", False, True)
    assert found["pipelines"][0].keys() == document(
        ABOUT, Answers(replies()), 0, 1.0
    )["pipelines"][0].keys()  # fmt: skip


def test_people_see_who_holds_the_frontier() -> None:
    """And that no broker is there."""
    console = Console(width=160, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    print_status(console, document(ABOUT, Answers(replies(), {FETCHER: 30.0}), 61_000, 1.0))
    text = console.export_text()
    assert "lake.s.a at 5 (+7)" in text
    assert "no broker is connected for 30 s" in text
    assert "p/fetcher[0]: has not answered for 30 s" in text


def test_people_see_the_formats_that_were_told_and_what_waits_for_one() -> None:
    """Of ``format = "auto"``: what was chosen, and which topic has told nothing yet."""
    figures = replace(replies()[FETCHER], formats={"a": "ogg-json"}, formats_awaited={"b": 3})  # type: ignore[type-var]
    found = document(ABOUT, Answers({FETCHER: figures}), 61_000, 1.0)
    assert found["pipelines"][0]["formats"] == {"a": "ogg-json"}
    console = Console(width=160, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    print_status(console, found)
    text = console.export_text()
    assert "formats: a ogg-json" in text
    assert "b: its format is not detected yet, 3 messages wait for it" in text


def test_targets_whose_rows_may_differ_are_told_opened_or_not() -> None:
    """As recorded, until a target that is open shows it, or shows it no more."""
    recorded = {
        f"lake.s.{name}": TargetMark("1", {}, rows_may_differ=f"{name} of before")
        for name in ("cleared", "here", "never_opened")
    }
    committer = CommitterLogic("p", Snapshot("p", "g", targets=recorded), 5.0, None)
    opened = {"cleared": None, "here": "here by now"}
    targets = tuple(
        replace(figures(TargetBuffer(route(name)), 0.0), hwms={SOURCE: 1}, rows_may_differ=mark)
        for name, mark in opened.items()
    )
    found = {
        Address("p", "committer"): answered(committer),
        Address("p", "processor", 0): ProcessorFigures(False, targets),
    }
    status = document(ABOUT, Answers(found), 0, 1.0)
    (pipeline,) = status["pipelines"]
    marked = {"lake.s.here": "here by now", "lake.s.never_opened": "never_opened of before"}
    assert pipeline["rows_may_differ"] == marked
    assert [t["rows_may_differ"] for t in pipeline["targets"]] == [None, "here by now"]
    metrics = [m for m in StatusCollector(lambda: status).collect() if "may_differ" in m.name]
    assert [s.labels["target"] for m in metrics for s in m.samples] == list(marked)
    console = Console(width=160, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    print_status(console, status)
    shown = console.export_text()
    assert "lake.s.never_opened: stored rows may differ from the source's: never_opened of" in shown


def route(name: str) -> TargetRoute:
    return TargetRoute(TargetName("lake", "s", name), Mode.UPSERT, None)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(None, "-"), (0.26, "0.3 s"), (59, "59 s"), (600, "10 min"), (9000, "2 h"), (2e5, "2 d")],
)
def test_durations(seconds: float | None, shown: str) -> None:
    """Short, for a table."""
    assert duration(seconds) == shown


def test_sizes() -> None:
    """Binary units."""
    assert [size(n) for n in (0, 1536, 5 << 20, 3 << 40)] == [
        "0 B", "1.5 KiB", "5.0 MiB", "3072.0 GiB",
    ]  # fmt: skip
