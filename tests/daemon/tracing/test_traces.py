"""What a receiver of OTLP gets of a daemon, and that a daemon does not care whether it is there."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import structlog

from daemon.app.progress import Quiet
from daemon.app.service import Service
from daemon.app.startup import Unusable
from daemon.config.config import Config
from daemon.config.file import load
from daemon.config.sections import TracingSection
from daemon.operations.checks import check
from sources import opening
from sparkwriter.sinks import ConfiguredSinks
from tests.daemon.flow import Flow, Log, pipeline
from tests.daemon.tracing.receiver import Receiver, Span, closed, receiving, silent

MakeFlow = Callable[[str], Flow]

ALL = "[tracing]\nendpoint = 'http://127.0.0.1:{port}'\nsample = 1.0\n"


@pytest.fixture
def make_flow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeFlow:
    """A daemon with one pipeline, and more in its file."""
    log = Log()
    monkeypatch.setitem(opening.ADAPTERS, "kafka", log.source)
    return lambda text: Flow(tmp_path, log, pipeline("p", "t", "*") + text)


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    """Spans are sent each tenth of a second, so that the tests need not wait for them."""
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
    with receiving() as found:
        yield found


def whole(spans: Sequence[Span]) -> dict[bytes, dict[str, list[Span]]]:
    """The traces that have all their spans, by name."""
    traces: dict[bytes, dict[str, list[Span]]] = {}
    for span in spans:
        traces.setdefault(span.trace, {}).setdefault(span.name, []).append(span)
    kinds = {"batch", "poll", "stage", "publish", "commit"}
    return {trace: names for trace, names in traces.items() if names.keys() == kinds}


def rows(spans: Sequence[Span]) -> int:
    """The rows of all whole traces."""
    return sum(names["stage"][0].told["binlogd.rows"] for names in whole(spans).values())


def test_a_batch_is_seen_from_its_poll_to_its_commit(
    make_flow: MakeFlow, receiver: Receiver
) -> None:
    """One trace for each batch of each target, its times in order, its counts those of the data."""
    flow = make_flow(ALL.format(port=receiver.port))
    flow.start()
    flow.insert("t", "a", 30)
    flow.insert("t", "b", 5)
    traces = whole(receiver.until(lambda spans: rows(spans) == 35))
    flow.stop()
    by_target = {"copy.shop.a": 0, "copy.shop.b": 0}
    for names in traces.values():
        (batch,), (stage,), (publish,), (commit,) = (
            names[name] for name in ("batch", "stage", "publish", "commit")
        )
        polls = names["poll"]
        for child in (stage, publish, commit, *polls):
            assert (child.parent, child.error) == (batch.id, "")
        assert batch.parent == b""
        assert batch.begun_ns == min(poll.begun_ns for poll in polls)
        assert max(poll.begun_ns for poll in polls) <= stage.begun_ns <= stage.ended_ns
        assert stage.ended_ns <= publish.begun_ns <= publish.ended_ns == batch.ended_ns
        assert publish.ended_ns <= commit.begun_ns <= commit.ended_ns
        if stage.told["binlogd.polls"] == len(polls):
            assert sum(p.told["binlogd.messages"] for p in polls) == stage.told["binlogd.rows"]
        assert {s for p in polls for s in p.told["binlogd.sources"]} == {"t:0"}
        assert batch.told["binlogd.outcome"] == "published"
        assert batch.told["binlogd.pipeline"] == "p"
        assert batch.service["service.name"] == "binlogd"
        by_target[batch.told["binlogd.target"]] += stage.told["binlogd.rows"]
    assert by_target == {"copy.shop.a": 30, "copy.shop.b": 5}


def test_headers_go_along_and_are_shown_nowhere(make_flow: MakeFlow, receiver: Receiver) -> None:
    """A receiver's password is a secret as all others."""
    flow = make_flow(
        ALL.format(port=receiver.port) + "headers = {authorization = 'Bearer hunter2-hunter2'}"
    )
    assert "hunter2" not in load(flow.config).redactor.text("said: Bearer hunter2-hunter2")
    flow.start()
    flow.insert("t", "a")
    receiver.until(lambda spans: rows(spans) == 1)
    flow.stop()
    assert {headers["authorization"] for headers in receiver.headers} == {"Bearer hunter2-hunter2"}


@pytest.mark.parametrize("away", [closed, silent])
def test_a_receiver_that_is_away_slows_nothing(make_flow: MakeFlow, away: Any) -> None:
    """Nobody listens, or nobody answers: all is applied, and a stop waits for the traces 2 s."""
    with away() as port, structlog.testing.capture_logs() as logged:
        flow = make_flow(ALL.format(port=port))
        flow.start()
        for _ in range(200):
            flow.insert("t", "a", 5)
        flow.applied("a", 1000)
        begun = time.monotonic()
        flow.stop()
        assert time.monotonic() - begun < 5
    # At most one line however often it was tried, and none of the library's.
    assert [line for line in logged if line["event"] == "library_said"] == []
    assert sum(line["event"] == "traces_not_taken" for line in logged) <= 1


def test_what_is_lost_is_said_once_and_the_receiver_comes_back(
    make_flow: MakeFlow, receiver: Receiver
) -> None:
    """A receiver that refuses: a line in the log, and another when it takes spans again."""
    receiver.status = 400
    with structlog.testing.capture_logs() as logged:
        flow = make_flow(ALL.format(port=receiver.port))
        flow.start()
        for expected in (1, 2, 3):
            flow.insert("t", "a")
            flow.applied("a", expected)
            receiver.asked(expected)
        receiver.status = 200
        flow.insert("t", "a")
        receiver.until(lambda spans: rows(spans) == 1)
        flow.until(lambda: any(line["event"] == "traces_taken_again" for line in logged))
        flow.stop()
    assert sum(line["event"] == "traces_not_taken" for line in logged) == 1


def test_few_are_sampled_and_none_without_an_endpoint(
    make_flow: MakeFlow, receiver: Receiver
) -> None:
    """A sample of almost nothing sends nothing; the flow is the same."""
    flow = make_flow(ALL.format(port=receiver.port).replace("1.0", "1e-12"))
    flow.start()
    flow.insert("t", "a", 20)
    flow.applied("a", 20)
    flow.stop()
    assert receiver.headers == []


def test_without_an_endpoint_nothing_of_it_is_imported() -> None:
    """Off is off: neither the packages nor anything between an actor and its effects."""
    code = (
        "import sys, daemon.app.service, daemon.cli\n"
        "from daemon.tracing.opening import Tracing\n"
        "from daemon.config.sections import TracingSection\n"
        "from types import SimpleNamespace as N\n"
        "assert Tracing(TracingSection(), 'run', str).around is None\n"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"


def test_without_its_packages_a_daemon_is_refused(
    make_flow: MakeFlow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By check-config and by the start, with the command that brings them."""
    flow = make_flow(ALL.format(port=1))
    config = load(flow.config)
    monkeypatch.delitem(sys.modules, "daemon.tracing.exporting", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    (line,) = (line for line in check.problems(config) if line.startswith("tracing"))
    assert "pip install 'binlogd[tracing]'" in line
    threads = set(threading.enumerate())
    with pytest.raises(Unusable, match=r"tracing\.endpoint"):
        Service(config, False, Quiet(), ConfiguredSinks()).run()
    assert {thread.name for thread in set(threading.enumerate()) - threads} == set()


@pytest.mark.parametrize(
    ("endpoint", "url"),
    [
        ("http://h:4318", "http://h:4318/v1/traces"),
        ("https://h/", "https://h/v1/traces"),
        ("https://h/otlp/v1/traces", "https://h/otlp/v1/traces"),
    ],
)
def test_an_address_without_a_path_gets_the_usual_one(endpoint: str, url: str) -> None:
    """As OTLP has it; one with a path is taken as it is."""
    assert TracingSection(endpoint=endpoint).url == url


@pytest.mark.parametrize("endpoint", ["h:4318", "grpc://h:4317", "http://u:p@h:4318", "http://"])
def test_other_addresses_are_refused(endpoint: str) -> None:
    """Those that are none, and those with a password."""
    with pytest.raises(ValueError, match="endpoint"):
        TracingSection(endpoint=endpoint)


def test_the_section_needs_a_restart(make_flow: MakeFlow) -> None:
    """A reload says so."""
    flow = make_flow("")
    flow.start()
    flow.write(pipeline("p", "t", "*") + ALL.format(port=1))
    _, refused = flow.reload()
    flow.stop()
    assert any("tracing.endpoint" in line for line in refused)
    assert isinstance(load(flow.config), Config)
