"""Events: each cause once when it begins and once when it ends; delivered in order, none lost."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from daemon.config.sections import EventsSection
from daemon.events import watch as module
from daemon.events.conditions import conditions
from daemon.events.watch import EventWatch
from tests.daemon.page.documents import failing, job, quarantined, status, target

WELL = status([target("lake.shop.t", 5)])
ILL = status(
    [failing(f"lake.shop.bad{n}", "no space") for n in range(5)]
    + [quarantined("lake.shop.shut", "why")],
    holder="lake.shop.bad0", lag=9, letters=2, jobs=[job(state="failed")],
    differ={"lake.shop.old": "ALTER TABLE"},
)  # fmt: skip


class Hook:
    """A webhook on this machine. ``answers``: statuses of the next requests, 200 after them."""

    def __init__(self) -> None:
        self.got: list[dict[str, Any]] = []
        self.answers: list[int] = []
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                code = hook.answers.pop(0) if hook.answers else 200
                if code == 200:
                    hook.got.append(json.loads(body))
                self.send_response(code)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Quiet."""

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        self.address = f"http://127.0.0.1:{self.server.server_port}/hook"


@pytest.fixture
def hook() -> Iterator[Hook]:
    made = Hook()
    yield made
    made.server.shutdown()
    made.server.server_close()


def test_each_cause_is_one_condition_of_its_pipeline() -> None:
    """However many targets it hits: a catalog that is away is one event."""
    assert conditions(WELL) == {}
    found = conditions(ILL)
    assert found.keys() == {
        (kind, "shop")
        for kind in ("behind", "dead_letters", "quarantine", "targets_failing", "rows_may_differ",
                     "job_failed")
    }  # fmt: skip
    assert found["targets_failing", "shop"] == (
        "lake.shop.bad0, lake.shop.bad1, lake.shop.bad2 and 2 more"
    )


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"failure": "why"}, "pipeline_failed"),
        ({"broker_unreachable_seconds": 121.0}, "broker_unreachable"),
        ({"offset_file": {"error": "full", "saved_seconds_ago": 9}}, "offset_store_failing"),
        ({"dead_letters": {"error": "full", "stored": 0, "waiting": 1}},
         "dead_letter_store_failing"),
    ],
)  # fmt: skip
def test_what_holds_a_pipeline_up(change: dict[str, Any], kind: str) -> None:
    (pipeline,) = WELL["pipelines"]
    assert [*conditions(WELL | {"pipelines": [pipeline | change]})] == [(kind, "shop")]


def test_a_log_that_is_cut_soon_a_jvm_that_is_away_an_actor_that_is_stuck() -> None:
    (pipeline,) = WELL["pipelines"]
    part = pipeline["partitions"][0] | {"retention_seconds": 100.0, "retention_left_seconds": 49.0}
    found = conditions(
        WELL
        | {"pipelines": [pipeline | {"partitions": [part]}]}
        | {"spark": WELL["spark"] | {"down_seconds": 121.0}}
        | {"silent": [{"actor": "shop/fetcher", "seconds": 130.0, "stuck": True}]}
    )
    assert [*found] == [("stuck", ""), ("jvm_down", ""), ("retention", "shop")]


def test_begun_and_ended_once_each_in_a_file(tmp_path: Path) -> None:
    shown = [WELL]
    events = EventWatch(EventsSection(file=str(tmp_path / "e.jsonl")), "run-1", lambda: shown[0])
    for found in (WELL, ILL, ILL, WELL, WELL):
        shown[0] = found
        events.look()
    lines = [json.loads(line) for line in (tmp_path / "e.jsonl").read_text().splitlines()]
    told = [(line["event"], line["kind"]) for line in lines]
    kinds = sorted(kind for kind, _ in conditions(ILL))
    assert sorted(told) == [("begun", kind) for kind in kinds] + [("ended", kind) for kind in kinds]
    assert {(line["pipeline"], line["run"]) for line in lines} == {("shop", "run-1")}


def test_a_webhook_gets_them_in_order_though_it_is_away_for_a_while(hook: Hook) -> None:
    shown = [ILL]
    events = EventWatch(EventsSection(webhook=hook.address), "run-1", lambda: shown[0])
    hook.answers = [200, 503]
    events.look()
    assert len(hook.got) == 1
    shown[0] = WELL
    events.look()
    count = len(conditions(ILL))
    assert [e["event"] for e in hook.got] == ["begun"] * count + ["ended"] * count
    assert not any("lost_before" in event for event in hook.got)


def test_what_no_webhook_took_is_counted(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest go; the next one that is delivered tells how many."""
    monkeypatch.setattr(module, "MOST_WAITING", 2)
    events = EventWatch(EventsSection(webhook=hook.address), "run-1", lambda: ILL)
    hook.answers = [500]
    events.look()
    assert hook.got == []
    events.look()
    lost = len(conditions(ILL)) - 2
    assert [event.get("lost_before") for event in hook.got] == [lost, None]


def test_a_file_that_can_not_be_written_ends_nothing(tmp_path: Path, hook: Hook) -> None:
    section = EventsSection(file=str(tmp_path / "none" / "e.jsonl"), webhook=hook.address)
    EventWatch(section, "run-1", lambda: ILL).look()
    assert len(hook.got) == len(conditions(ILL))


@pytest.mark.parametrize("webhook", ["ftp://h", "h:80", "file:///etc/passwd"])
def test_a_webhook_is_an_http_address(webhook: str) -> None:
    with pytest.raises(ValidationError, match="http"):
        EventsSection(webhook=webhook)
