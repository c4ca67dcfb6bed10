"""A session that is down is seen: not ready, though healthy, with its story."""

from __future__ import annotations

from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from rich.console import Console

from actors.contract.addresses import Address
from actors.contract.figures import FetcherFigures
from daemon.admin.status.health import verdict
from daemon.admin.status.metrics import StatusCollector
from daemon.admin.status.observer import SUPERVISOR, Answers
from daemon.admin.status.status import About, LifeFigures, document
from daemon.admin.status.status_table import print_status
from sources.base.log_figures import LogFigures
from sparkwriter.session.keeper import SessionFigures

ABOUT = About(run="r", pid=1, groups={"p": "g"}, processors=1, stuck_after_s=20.0)
RUNNING = Answers(
    {
        SUPERVISOR: LifeFigures({"p": "running"}, {}, False),
        Address("p", "fetcher"): FetcherFigures(True, False, {}, 0, 0, 0, None),
    }
)
UP = SessionFigures(pid=7, age_s=90.0, rebuilt=2, last_end="was ended by SIGKILL")
DOWN = SessionFigures(down_s=4.0, rebuilt=1, last_end="was ended by SIGKILL")


def status(session: SessionFigures | None) -> dict[str, Any]:
    return document(ABOUT, RUNNING, 0, 1.0, session, {"p": LogFigures({}, None)})


@pytest.mark.parametrize(("session", "ready"), [(None, True), (UP, True), (DOWN, False)])
def test_without_a_session_it_is_not_ready(session: SessionFigures | None, ready: bool) -> None:
    """Healthy it is: a restart by systemd would bring nothing that the daemon does not do."""
    found = status(session)
    assert (found["ready"], found["healthy"]) == (ready, True)


def test_the_readiness_page_says_what_is_waited_for() -> None:
    """How the JVM ended, and since when there is none."""
    good, lines = verdict("/readyz", status(DOWN))
    assert not good
    assert "binlogd: the JVM was ended by SIGKILL 4 s ago; it is started again" in lines


@pytest.mark.parametrize(
    ("session", "expected"),
    [
        (UP, ["spark_up 1.0", "spark_session_age_seconds 90.0", "spark_rebuilt_total 2.0"]),
        (DOWN, ["spark_up 0.0", "spark_down_seconds 4.0", "spark_rebuilt_total 1.0"]),
    ],
)
def test_metrics_count_what_was_rebuilt(session: SessionFigures, expected: list[str]) -> None:
    """And tell since when it lives, or does not."""
    registry = CollectorRegistry()
    registry.register(StatusCollector(lambda: status(session)))
    lines = generate_latest(registry).decode().splitlines()
    assert {f"binlogd_{line}" for line in expected} <= set(lines)


@pytest.mark.parametrize(
    ("session", "line"),
    [
        (UP, "the JVM was ended by SIGKILL; the session was rebuilt 90 s ago (2 times in all)"),
        (DOWN, "the JVM was ended by SIGKILL 4.0 s ago, another is being started"),
    ],
)
def test_people_see_what_became_of_it(session: SessionFigures, line: str) -> None:
    """A line at the top: it concerns all pipelines."""
    console = Console(width=160, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    print_status(console, status(session))
    assert line in console.export_text()
