"""Events: each cause once when it begins and once when it ends; delivered in order, none lost."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path

import pytest
from pydantic import ValidationError

from daemon.admin.events import delivery, post
from daemon.admin.events import watch as module
from daemon.admin.events.watch import EventWatch
from daemon.admin.status.first_seen import FirstSeen
from daemon.admin.status.health import conditions
from daemon.config.sections import EventsSection
from tests.daemon.admin.events.hook import Hook
from tests.daemon.admin.page.documents import failing, job, quarantined, status, target

WELL = status([target("lake.shop.t", 5)])
ILL = status(
    [failing(f"lake.shop.bad{n}", "no space") for n in range(5)]
    + [quarantined("lake.shop.shut", "why")],
    holder="lake.shop.bad0", lag=9, letters=2, jobs=[job(state="failed")],
    differ={"lake.shop.old": "ALTER TABLE"},
)  # fmt: skip


@pytest.fixture
def hook() -> Iterator[Hook]:
    made = Hook()
    yield made
    made.close()


def test_further_quarantines_are_told(tmp_path: Path) -> None:
    """Nine after the first, and their ends."""
    names = [f"lake.shop.t{n}" for n in range(10)]
    shown = [status([quarantined(names[0], "why")])]
    events = EventWatch(EventsSection(file=str(tmp_path / "e")), "run-1", lambda: shown[0])
    events.look()
    shown[0] = status([quarantined(name, "why") for name in names])
    events.look()
    shown[0] = status([quarantined(names[9], "why")])
    events.look()
    lines = [json.loads(line) for line in (tmp_path / "e").read_text().splitlines()]
    told = [(line["event"], line["subject"]) for line in lines]
    assert told == [("begun", n) for n in names] + [("ended", n) for n in names[:9]]


def test_a_pipeline_without_room_is_told_once_it_lasts(tmp_path: Path) -> None:
    """Two minutes: room that is used up for a moment is no news."""
    (pipeline,) = WELL["pipelines"]
    held = WELL | {"pipelines": [pipeline | {"held": True}]}
    held["conditions"] = [one.document() for one in conditions(held)]
    shown, clock = [held], [0.0]
    seen = FirstSeen(lambda: clock[0])
    section = EventsSection(file=str(tmp_path / "e"))
    events = EventWatch(section, "run-1", lambda: seen.fill(deepcopy(shown[0])))
    for at, found in ((0, held), (110, held), (115, WELL), (120, held), (250, held), (260, WELL)):
        clock[0], shown[0] = float(at), found
        events.look()
    lines = [json.loads(line) for line in (tmp_path / "e").read_text().splitlines()]
    assert [(line["event"], line["kind"]) for line in lines] == [
        ("begun", "held"),
        ("ended", "held"),
    ]


def test_begun_and_ended_once_each_in_a_file(tmp_path: Path) -> None:
    shown = [WELL]
    events = EventWatch(EventsSection(file=str(tmp_path / "e.jsonl")), "run-1", lambda: shown[0])
    for found in (WELL, ILL, ILL, WELL, WELL):
        shown[0] = found
        events.look()
    lines = [json.loads(line) for line in (tmp_path / "e.jsonl").read_text().splitlines()]
    told = [(line["event"], line["kind"]) for line in lines]
    kinds = sorted(one.kind for one in conditions(ILL))
    assert sorted(told) == [("begun", kind) for kind in kinds] + [("ended", kind) for kind in kinds]
    assert {(line["pipeline"], line["run"]) for line in lines} == {("shop", "run-1")}


def delivered(events: EventWatch, times: int) -> None:
    """So many deliveries, as the thread makes them."""
    assert events.delivery is not None
    for _ in range(times):
        events.delivery.deliver()


def test_a_webhook_gets_them_in_order_though_it_is_away_for_a_while(hook: Hook) -> None:
    shown = [ILL]
    events = EventWatch(EventsSection(webhook=hook.address), "run-1", lambda: shown[0])
    hook.answers = [200, 503]
    events.look()
    delivered(events, 2)
    assert len(hook.got) == 1
    shown[0] = WELL
    events.look()
    count = len(conditions(ILL))
    delivered(events, 2 * count)
    assert [e["event"] for e in hook.got] == ["begun"] * count + ["ended"] * count
    assert not any("lost_before" in event for event in hook.got)


def test_what_no_webhook_took_is_counted(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest go; the next one that is delivered tells how many."""
    monkeypatch.setattr(delivery, "MOST_WAITING", 2)
    events = EventWatch(EventsSection(webhook=hook.address), "run-1", lambda: ILL)
    hook.answers = [500]
    events.look()
    delivered(events, 3)
    lost = len(conditions(ILL)) - 2
    assert [event.get("lost_before") for event in hook.got] == [lost, None]


def test_an_old_event_goes(hook: Hook) -> None:
    """It is news no more, and is counted."""
    now = [0.0]
    made = delivery.WebhookDelivery(hook.address, lambda: now[0])
    made.add({"kind": "old"})
    now[0] = delivery.KEPT_S + 1
    made.add({"kind": "new"})
    made.deliver()
    assert hook.got == [{"kind": "new", "lost_before": 1}]


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_a_redirect_is_no_delivery(hook: Hook, code: int) -> None:
    """Followed, it would be a GET without the event."""
    hook.answers = [code]
    with pytest.raises(post.NotTaken, match=f"answers {code}, a redirect, which is not followed"):
        post.post(hook.address, b"{}", "events.webhook")
    assert hook.paths == ["/hook"]


@pytest.mark.parametrize(
    ("scheme", "begin"), [("http", b"H"), ("https", b"\x16\x03\x03\x3f\xff\x02")]
)
def test_a_webhook_that_trickles_holds_up_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str, begin: bytes
) -> None:
    """It sends a byte now and then, for ever, of its answer or of TLS's handshake: a delivery has
    an end, and the file has its lines meanwhile."""
    monkeypatch.setattr(post, "POST_WITHIN_S", 1.0)
    asked, failed = threading.Semaphore(0), threading.Event()

    def trickle(client: socket.socket) -> None:
        client.recv(65536)
        asked.release()
        try:
            client.sendall(begin)
            while not failed.is_set():
                client.sendall(b"H")
                failed.wait(0.05)
        except OSError:
            failed.set()

    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        threading.Thread(target=lambda: trickle(server.accept()[0]), daemon=True).start()
        section = EventsSection(file=str(tmp_path / "e"), webhook=f"{scheme}://127.0.0.1:{port}/")
        events = EventWatch(section, "run-1", lambda: ILL)
        events.start()
        assert asked.acquire(timeout=30)
        begun = time.monotonic()
        events.look()
        assert len((tmp_path / "e").read_text().splitlines()) >= len(conditions(ILL))
        assert failed.wait(30)
        assert time.monotonic() - begun < 10
        events.close()


def test_a_file_that_can_not_be_written_ends_nothing(tmp_path: Path, hook: Hook) -> None:
    section = EventsSection(file=str(tmp_path / "none" / "e.jsonl"), webhook=hook.address)
    events = EventWatch(section, "run-1", lambda: ILL)
    events.look()
    count = len(conditions(ILL))
    delivered(events, count)
    assert len(hook.got) == count


@pytest.mark.parametrize("webhook", ["ftp://h", "h:80", "file:///etc/passwd"])
def test_a_webhook_is_an_http_address(webhook: str) -> None:
    with pytest.raises(ValidationError, match="http"):
        EventsSection(webhook=webhook)


def test_the_file_does_not_grow_without_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is full gets another name, in place of the one before it: no event is lost soon."""
    monkeypatch.setattr(module, "MOST_BYTES", 1000)
    path, shown = tmp_path / "e.jsonl", [WELL]
    events = EventWatch(EventsSection(file=str(path)), "run-1", lambda: shown[0])
    for number in range(20):
        shown[0] = WELL if number % 2 else ILL
        events.look()
    files = sorted(each.name for each in tmp_path.iterdir())
    assert files == ["e.jsonl", "e.jsonl.1"]
    lines = [json.loads(line) for name in reversed(files) for line in (tmp_path / name).open()]
    assert lines[-1]["event"] == "ended"
    longest = max(len(line) for name in files for line in (tmp_path / name).open())
    assert all((tmp_path / name).stat().st_size < 1000 + longest for name in files)


def test_a_pipe_is_no_file_to_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever reads it gets all."""
    monkeypatch.setattr(module, "MOST_BYTES", 1)
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    events = EventWatch(EventsSection(file=str(path)), "run-1", lambda: ILL)
    events.look()
    assert os.read(reader, 1 << 16).count(b"\n") == len(conditions(ILL))
    os.close(reader)
    assert [each.name for each in tmp_path.iterdir()] == ["pipe"]
