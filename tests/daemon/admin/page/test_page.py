"""The documents whole, and the server that sends them."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from daemon.admin.page.document import POLICY, page, target_page
from daemon.admin.page.history import History
from daemon.admin.page.targets import View, target_address
from daemon.admin.status.health import conditions
from daemon.admin.web import WebServer
from settings.shell import quoted
from tests.daemon.admin.page.documents import failing, job, quarantined, status, target

HOSTILE = [
    "lake.shop.<script>alert(1)</script>",
    'lake.shop."><img src=x onerror=alert(1)>',
    "lake.shop." + "x" * 200,
    "lake.shop.\u202etxt\u2066",
    "lake.shop.a\nb\x1b[31m",
    "lake.shop.`a``b`' $(reboot)",
]


@contextmanager
def served(found: Any, token: str = "", listen: Any = ("127.0.0.1", 0)) -> Iterator[WebServer]:
    server = WebServer(listen, lambda: found, token)
    server.start()
    try:
        yield server
    finally:
        server.close()


def get(server: WebServer, path: str, **headers: str) -> tuple[int, str, Any]:
    host, port = server.address
    request = urllib.request.Request(f"http://{host}:{port}{path}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as reply:
            return reply.status, reply.read().decode(), reply.headers
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(), error.headers


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_names_stay_text(hostile: str) -> None:
    """Wherever the page shows one: targets, holders, quarantines, errors, jobs, commands."""
    history = History()
    found = status(
        [quarantined(hostile, f"{hostile}: no"), failing(f"{hostile}2", hostile)],
        holder=hostile,
        lag=500,
        jobs=[job(targets=[hostile], message=hostile)],
        differ={hostile: hostile},
    )
    history.sample(found)
    text = page(found, history, View(search=hostile[:20]))
    text += target_page(found, history, "shop", hostile) or ""
    body = re.sub(r"<script>.*?</script>", "", text, count=0, flags=re.S)
    assert "<img" not in body
    assert "alert(1)</script>" not in body
    assert not re.search("[\x00-\x09\x0b-\x1f\u202a-\u202e\u2066-\u2069]", text)


@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_shell_makes_the_name_of_the_shown_command_again(hostile: str) -> None:
    """A command that is copied does nothing else than it says."""
    shown = subprocess.run(
        ["bash", "-c", f"printf %s {quoted(hostile)}"],
        capture_output=True,
        check=True,
        env={**os.environ, "LC_ALL": "C.UTF-8"},
    )
    assert shown.stdout.decode() == hostile


@pytest.mark.parametrize("trouble", [target, failing, quarantined])
def test_three_thousand_targets_do_not_make_the_page_heavy(trouble: Callable[..., Any]) -> None:
    """Whatever is wrong with each of them: a phone reads it every two seconds."""
    names = [f"lake.tenant{n % 60:02}.table_{n:04}" for n in range(3_000)]
    reasons = {failing: "no space left on device", quarantined: "a column is gone"}
    each = (reasons[trouble],) if trouble in reasons else ()
    found = status([trouble(name, *each) for name in names], recorded=names)
    history = History()
    history.sample(found)
    text = page(found, history, View())
    assert names[0] in text
    assert len(text.encode()) < 150_000


def test_the_page_says_what_waits_and_the_command_for_it() -> None:
    """Quarantine, dead letters, rows that may differ, a job that failed."""
    found = status(
        [quarantined("lake.shop.shut", "lake.shop.shut: a column is gone")],
        letters=3,
        differ={"lake.shop.old": "ALTER TABLE"},
        jobs=[job(), job(job="load-9", state="failed", message="the table is gone")],
    )
    text = re.sub("</?span>", "", page(found, History(), View()))
    for said in (
        "binlogd tables retry lake.shop.shut",
        "binlogd dead-letters replay --pipeline shop --all",
        "binlogd tables verify lake.shop.old --repair",
        "binlogd jobs show load-9",
        "8,200 messages, 3.2 MiB kept",
        "1.2M of 5.0M rows",
    ):
        assert said in text


def test_all_is_well_is_said_only_then() -> None:
    well = status([target("lake.shop.t", 5)])
    assert "all is well" in page(well, History(), View())
    (pipeline,) = well["pipelines"]
    silent = [{"actor": "shop/fetcher", "seconds": 130.0, "stuck": True}]
    for change, verdict in (
        ({"silent": silent}, "ill"),
        ({"pipelines": [pipeline | {"failure": "why"}]}, "ill"),
        ({"state": "starting"}, "passing"),
        ({"pipelines": [pipeline | {"held": True}]}, "passing"),
        ({"pipelines": [pipeline | {"lag_seconds": 301.0}]}, "passing"),
    ):
        found = well | change
        found["conditions"] = [one.document() for one in conditions(found)]
        text = page(found, History(), View())
        assert "all is well" not in text
        assert f'class="verdict {verdict}" role="status"' in text
    assert 'class="verdict ill"' in page(status([failing("lake.shop.t", "x")]), History(), View())


def test_records_that_can_not_be_read_yet_are_shown() -> None:
    """The log's end, and where the first open transaction begins; who must end it."""
    shown = status([target("lake.shop.t", 5)])
    (part,) = shown["pipelines"][0]["partitions"]
    part["open_transaction"] = {"offset": 498_000, "messages": 2_000, "seconds": 700.0}
    shown["conditions"] = [one.document() for one in conditions(shown)]
    text = page(shown, History(), View())
    assert "500,000, readable to 498,000" in text
    assert "a transaction is open at 498000 for " in text


def test_it_reloads_by_itself_where_no_script_runs() -> None:
    text = page(status([]), History(), View())
    assert '<noscript><meta http-equiv="refresh" content="5"/></noscript>' in text


def test_a_server_sends_the_page_with_its_policy() -> None:
    """And the page of one target; what is not there is 404."""
    with served(status([target("lake.shop.t", 5)])) as server:
        code, text, headers = get(server, "/")
        assert (code, headers["Content-Security-Policy"]) == (200, POLICY)
        assert "unsafe" not in POLICY
        assert headers["Content-Type"] == "text/html; charset=utf-8"
        assert "lake.shop.t" in text
        assert get(server, target_address("shop", "lake.shop.t"))[0] == 200
        assert get(server, target_address("shop", "lake.shop.none"))[0] == 404
        assert get(server, "/page.css")[0] == 404
        assert get(server, "/", Host="evil.example")[0] == 403


def test_a_token_opens_it() -> None:
    with served(status([]), token="0123456789abcdef") as server:
        assert get(server, "/")[0] == 401
        assert get(server, "/metrics")[0] == 401
        assert get(server, "/healthz")[0] == 200
        assert get(server, "/", Authorization="Bearer 0123456789abcdef")[0] == 200


def test_beyond_loopback_it_is_refused() -> None:
    """On all addresses, asked by this machine: what counts is where it listens."""
    with served(status([]), listen=("0.0.0.0", 0)) as server:
        _, port = server.address
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10)


def test_a_unix_socket_serves_it_to_its_owner(tmp_path: Path) -> None:
    """Mode 0600; a socket of a dead daemon is replaced, and a live one's goes with it."""
    path = tmp_path / "page.sock"
    for _ in range(2):
        with served(status([target("lake.shop.t", 5)]), listen=path):
            assert path.stat().st_mode & 0o777 == 0o600
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(str(path))
                client.sendall(b"GET / HTTP/1.0\r\n\r\n")
                answer = b"".join(iter(lambda: client.recv(65536), b""))
            assert b"200 OK" in answer
            assert b"lake.shop.t" in answer
        assert not path.exists()


def test_readers_that_do_not_read_keep_nobody_out() -> None:
    """Fifty connections, half of which ask for the page and read nothing, half say nothing: metrics
    come, and the page does."""
    found = status([target(f"lake.shop.t{n}", n) for n in range(3_000)])
    with served(found) as server:
        slow = [socket.create_connection(server.address) for _ in range(50)]
        for client in slow[:25]:
            client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert get(server, "/metrics")[0] == 200
        assert get(server, "/")[0] == 200
        for client in slow:
            client.close()


def test_readers_share_a_document() -> None:
    """However many ask at once, the daemon makes one."""
    made: list[int] = []

    def count() -> dict[str, Any]:
        made.append(1)
        return status([])

    server = WebServer(("127.0.0.1", 0), count)
    server.start()
    try:
        threads = [threading.Thread(target=get, args=(server, "/")) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        server.close()
    assert len(made) <= 4  # one a second, and the history's first sample
