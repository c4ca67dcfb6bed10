"""When certificates and tokens end, and where that is looked up."""

from __future__ import annotations

import base64
import contextlib
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from daemon.admin.expiry import EVERY_S, Expiry, credentials, end_of_certificates, end_of_token
from daemon.config.file import load
from tests.certificates import self_signed

NOW = datetime(2026, 5, 1, tzinfo=UTC)


def certificate(days: float) -> bytes:
    """One that ends so many days after ``NOW``."""
    return self_signed(NOW, days)


def token(**claims: object) -> str:
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
    return f"e30.{body}.x"


def after(days: float) -> float:
    return (NOW + timedelta(days=days)).timestamp()


def test_a_chain_ends_with_its_first_certificate_authorities_with_their_last() -> None:
    both = certificate(3) + certificate(30)
    assert end_of_certificates(both, authorities=False) == after(3)
    assert end_of_certificates(both, authorities=True) == after(30)


@pytest.mark.parametrize(
    ("claims", "end"), [({"exp": 1_790_000_000}, 1_790_000_000.0), ({}, None), ({"exp": "x"}, None)]
)
def test_a_token_says_its_end(claims: dict[str, object], end: float | None) -> None:
    assert end_of_token(token(**claims)) == end


@pytest.mark.parametrize("text", ["a.b.c", "a.!!.c", "a..c", "a.bnVsbA.c"])
def test_what_is_no_token_has_no_end(text: str) -> None:
    """Three words with dots between them may be anything."""
    with contextlib.suppress(ValueError):
        assert end_of_token(text) is None


def test_a_configuration_names_them(tmp_path: Path) -> None:
    """Certificates of all Kafka sections, the token of a catalog; of files that are there."""
    (tmp_path / "c.pem").write_bytes(certificate(3))
    (tmp_path / "broken.pem").write_text("no certificate")
    (tmp_path / "c.toml").write_text(f"""
        [kafka]
        "bootstrap.servers" = "h:1"
        "ssl.certificate.location" = "{tmp_path}/c.pem"
        "ssl.ca.location" = "{tmp_path}/missing.pem"
        [sink.lake]
        kind = "iceberg"
        [sink.lake.catalog]
        type = "rest"
        uri = "http://h"
        warehouse = "w"
        token = "{token(exp=after(9))}"
        [pipeline.p]
        topics = ["t"]
        format = "auto"
        target = "lake.a.b"
        kafka."ssl.certificate.location" = "{tmp_path}/broken.pem"
    """)
    config = load(tmp_path / "c.toml")
    known = Expiry(credentials(config.kafka, config.pipeline, config.sink)).figures()
    assert known == [
        {"credential": "kafka.ssl.certificate.location", "expires_ms": after(3) * 1000},
        {"credential": "sink.lake.catalog.token", "expires_ms": after(9) * 1000},
    ]


def test_a_file_that_was_replaced_is_seen() -> None:
    """After a while: files are not read for each scrape."""
    now, ends = [0.0], [1.0]
    expiry = Expiry({"x": lambda: ends[0]}, lambda: now[0])
    assert [one["expires_ms"] for one in expiry.figures()] == [1000]
    ends[0], now[0] = 2.0, EVERY_S - 1
    assert [one["expires_ms"] for one in expiry.figures()] == [1000]
    now[0] = EVERY_S
    assert [one["expires_ms"] for one in expiry.figures()] == [2000]
