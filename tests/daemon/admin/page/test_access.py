"""Who gets the page: this machine, or who has the token."""

from __future__ import annotations

import base64
import socket
from http import HTTPStatus

import pytest

from daemon.admin.page.access import Access

TOKEN = "a-token-of-some-length"
LOCAL = {"Host": "127.0.0.1:9464"}


def basic(password: str) -> dict[str, str]:
    said = base64.b64encode(f"anyone:{password}".encode()).decode()
    return {"Authorization": f"Basic {said}"}


@pytest.mark.parametrize("host", ["localhost:9464", "127.0.0.1", "[::1]:9464", "LOCALHOST"])
def test_on_loopback_this_machines_names_are_answered(host: str) -> None:
    assert Access("127.0.0.1", "").refusal("/", {"Host": host}) is None


@pytest.mark.parametrize("host", ["evil.example:9464", "", "127.0.0.1.evil.example", "[::2]:1"])
def test_a_foreign_name_that_leads_here_is_refused(host: str) -> None:
    """A web site may give its name our address: a browser here would read the page for it."""
    refusal = Access("127.0.0.1", "").refusal("/", {"Host": host})
    assert refusal is not None
    assert refusal.status is HTTPStatus.FORBIDDEN


@pytest.mark.parametrize("path", ["/", "/target"])
def test_beyond_loopback_there_is_no_page_without_a_token(path: str) -> None:
    """Metrics and probes are served as before."""
    access = Access("0.0.0.0", "")
    refusal = access.refusal(path, LOCAL)
    assert refusal is not None
    assert refusal.status is HTTPStatus.FORBIDDEN
    assert "metrics.token" in refusal.text
    assert [access.refusal(p, {}) for p in ("/metrics", "/healthz", "/readyz")] == [None] * 3


def test_beyond_loopback_the_metrics_are_for_those_who_call_it_right() -> None:
    """By its address, which no web site can have, by its own name, or by one of the configured."""
    access = Access("0.0.0.0", "", ("binlogd.example",))
    for good in ("10.1.2.3:9464", "[fd00::1]:9464", socket.gethostname(), "BINLOGD.example:80"):
        assert access.refusal("/metrics", {"Host": good}) is None
    for bad in ("evil.example", "10.1.2.3.evil.example", "binlogd.example.evil.example"):
        refusal = access.refusal("/metrics", {"Host": bad})
        assert refusal is not None
        assert "metrics.hosts" in refusal.text
    assert (
        Access("127.0.0.1", "", ("proxy.example",)).refusal("/", {"Host": "proxy.example"}) is None
    )


@pytest.mark.parametrize("host", ["0.0.0.0", "127.0.0.1", None])
def test_a_token_is_asked_for_wherever_it_is_set(host: str | None) -> None:
    """Of the page and the metrics; probes have none."""
    access = Access(host, TOKEN)
    for path in ("/", "/target", "/metrics", "/unknown"):
        refusal = access.refusal(path, LOCAL)
        assert refusal is not None
        assert (refusal.status, "WWW-Authenticate" in refusal.headers) == (401, True)
        assert access.refusal(path, {"Authorization": f"Bearer {TOKEN}"}) is None
        assert access.refusal(path, basic(TOKEN)) is None
    assert access.refusal("/healthz", {}) is None


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"Authorization": ""},
        {"Authorization": TOKEN},
        {"Authorization": f"Digest {TOKEN}"},
        {"Authorization": "Bearer "},
        {"Authorization": f"Bearer {TOKEN}x"},
        {"Authorization": "Basic !!!"},
        {"Authorization": "Basic \u00e9"},
        basic(""),
        basic(TOKEN[:-1]),
    ],
)
def test_another_word_is_not_the_token(said: dict[str, str]) -> None:
    assert Access("127.0.0.1", TOKEN).refusal("/", {**LOCAL, **said}) is not None


def test_a_unix_sockets_mode_says_who_may_connect() -> None:
    assert Access(None, "").refusal("/", {"Host": "anything"}) is None
