"""What becomes of a batch's trace when its way is not straight."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from actors.contract.effects import LaneMessages, Stage
from actors.contract.messages import Failed, FailureKind, Fetched, Published, Staged
from actors.contract.raw_messages import Messages
from actors.contract.writes import StagedBatch, TargetState
from changes.model.model import Mode, TableSchema, TargetName
from changes.routes.routing import TargetRoute
from daemon.config.sections import TracingSection
from daemon.tracing import batches
from daemon.tracing.batches import BatchTraces
from daemon.tracing.exporting import QUEUED, Exporting
from offsets.fence import Span
from offsets.position import TopicPartition
from tests.daemon.tracing.receiver import silent

SOURCE, TARGET = TopicPartition("t", 0), TargetName("copy", "shop", "a")
DONE = Published(TargetState(version="7"), 0.1)
LATER = Failed(TARGET, FailureKind.RETRY, "s3cret is away")


class Run:
    """The traces of a run, told at the seconds 1, 2, 3 …"""

    def __init__(self) -> None:
        self._sent = InMemorySpanExporter()
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self._sent))
        self.traces = BatchTraces(
            provider.get_tracer("binlogd"), lambda text: text.replace("s3cret", "***")
        )
        self.second = 0

    def _next(self) -> tuple[int, int]:
        self.second += 1
        return self.second * 10**9, self.second * 10**9 + 1

    def poll(self, first: int, last: int) -> None:
        """Messages came."""
        offsets = list(range(first, last + 1))
        fetched = Fetched(SOURCE, offsets, [b""] * len(offsets), last + 1)
        self.traces.polled("p", (fetched,), *self._next())

    def stage(self, path: str, offsets: Sequence[int], *earlier: str) -> None:
        """They were staged."""
        lane = LaneMessages(SOURCE, Messages.of(list(offsets), [b""] * len(offsets)))
        request = Stage(TargetRoute(TARGET, Mode.UPSERT, None), earlier, (lane,))
        staged = Staged(TARGET, path, rows=len(offsets), changes=len(offsets), size=9)
        self.traces.staged("p", request, staged, *self._next())

    def publish(self, path: str, through: int, answer: Published | Failed = DONE) -> None:
        """A sink was asked to take them."""
        lanes = {SOURCE: Span(-1, through)}
        batch = StagedBatch("b", TARGET, Mode.UPSERT, TableSchema({}, ()), lanes, path)
        self.traces.published(batch, answer, *self._next())

    def save(self, frontier: int) -> None:
        """Positions were stored."""
        self.traces.saved("p", {SOURCE: frontier}, *self._next())

    @property
    def spans(self) -> list[str]:
        """The names of what was sent."""
        return [span.name for span in self._sent.get_finished_spans()]

    def of(self, name: str) -> list[ReadableSpan]:
        """The spans of a name."""
        return [span for span in self._sent.get_finished_spans() if span.name == name]

    @property
    def outcomes(self) -> list[object]:
        """How batches ended."""
        return [(span.attributes or {})["binlogd.outcome"] for span in self.of("batch")]


@pytest.fixture
def run() -> Run:
    return Run()


def test_an_attempt_that_failed_is_a_span_with_its_reason(run: Run) -> None:
    """Without secrets; the batch ends with the attempt that succeeds."""
    run.poll(0, 4)
    run.stage("f", [0, 1, 4])
    run.publish("f", 4, LATER)
    run.publish("f", 4)
    first, second = run.of("publish")
    assert (first.status.description, second.status.description) == ("retry: *** is away", None)
    assert run.outcomes == ["published"]
    assert run.of("batch")[0].end_time == second.end_time


def test_a_commit_counts_once_its_frontier_is_above_the_batch(run: Run) -> None:
    """The frontier is where reading goes on: offset 4 is committed by 5."""
    run.poll(0, 4)
    run.stage("f", [0, 4])
    run.publish("f", 4)
    run.save(4)
    assert run.of("commit") == []
    run.save(5)
    run.save(6)
    (commit,) = run.of("commit")
    assert commit.start_time == 5 * 10**9


def test_a_batch_that_grew_is_one_trace(run: Run) -> None:
    """Staged once more behind its first file, with the polls of both."""
    run.poll(0, 4)
    run.stage("f", [0])
    run.poll(5, 9)
    run.stage("g", [5, 6], "f")
    run.publish("g", 6)
    assert run.spans == ["poll", "stage", "poll", "stage", "publish", "batch"]
    (trace,) = {span.context.trace_id for name in run.spans for span in run.of(name)}
    assert trace
    assert [(span.attributes or {})["binlogd.messages"] for span in run.of("poll")] == [1, 2]


def test_two_batches_that_become_one(run: Run) -> None:
    """The second's trace ends, and says so."""
    run.stage("f", [0])
    run.stage("g", [1])
    run.stage("h", [2], "f", "g")
    run.publish("h", 2)
    assert run.outcomes == ["joined to another", "published"]


@pytest.mark.parametrize("end", [lambda run: run.traces.given_up(("f", "?"), 9 * 10**9),
                                 lambda run: run.traces.close(9 * 10**9)])  # fmt: skip
def test_what_is_not_written_ends_too(run: Run, end: Callable[[Run], None]) -> None:
    """Of a partition that went away, of a refused target, of a run that ends."""
    run.stage("f", [0])
    end(run)
    run.publish("f", 0)
    assert run.spans == ["stage", "batch"]
    assert run.outcomes == ["given up"]


def test_what_was_polled_twice_shows_the_newest_poll(run: Run) -> None:
    """After a revoke the same offsets come again."""
    run.poll(0, 4)
    run.poll(0, 9)
    run.stage("f", [3, 4, 5])
    (poll,) = run.of("poll")
    assert poll.start_time == 2 * 10**9
    assert (poll.attributes or {})["binlogd.messages"] == 3


def test_polls_are_remembered_and_shown_within_bounds(run: Run) -> None:
    """A batch of many polls shows its oldest and its newest; one that waited too long none."""
    for offset in range(batches.POLLS_REMEMBERED + 1):
        run.poll(offset, offset)
    run.stage("f", range(1, 1000))
    polls = run.of("poll")
    assert [(poll.start_time or 0) // 10**9 for poll in polls] == [2, 3, 4, 1000]
    assert (run.of("stage")[0].attributes or {})["binlogd.polls"] == 999
    run.stage("g", [0])
    assert run.of("poll") == polls


def test_further_batches_are_not_traced(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing is written for long, memory stays bounded."""
    monkeypatch.setattr(batches, "MOST_OPEN", 2)
    for number in range(5):
        run.stage(f"f{number}", [number])
    run.traces.close(9 * 10**9)
    assert run.outcomes == ["given up"] * 2


@pytest.mark.long
def test_a_full_queue_holds_nobody_up() -> None:
    """A receiver that never answers: spans beyond the bound are lost, and the end is bounded."""
    with silent() as port:
        section = TracingSection(endpoint=f"http://127.0.0.1:{port}", sample=1.0)
        exporting = Exporting(section, "run", "0")
        traces = BatchTraces(exporting.tracer)
        begun = time.monotonic()
        for number in range(3 * QUEUED):
            span = exporting.tracer.start_span("batch", start_time=number)
            span.end()
        traces.close(0)
        exporting.close()
        assert time.monotonic() - begun < 20
