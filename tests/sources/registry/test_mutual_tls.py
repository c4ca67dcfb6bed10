"""A registry that asks for a client's certificate, and one whose own is not to be trusted."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from changes.formats.wire.schemas import SchemaId
from sources.registry.client import open_client
from sources.registry.errors import RegistryAway
from sources.registry.section import RegistrySection
from tests.certificates import DAY, Authority
from tests.sources.registry.server import RegistryServer

SEVEN = SchemaId("id", "7")
PASSWORD = "of the key"


@pytest.fixture
def ours(tmp_path: Path) -> Authority:
    return Authority(tmp_path, "ours")


@pytest.fixture
def server() -> Iterator[RegistryServer]:
    registry = RegistryServer()
    registry.avro(7, "id")
    yield registry
    registry.stop()


def serve(server: RegistryServer, ours: Authority, ends_in: timedelta = DAY) -> None:
    """Answer over TLS, to clients with a certificate of ours."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(ours.file))
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(*ours.signed("server", ends_in, PASSWORD), PASSWORD)
    server.start(context)


def fetched(server: RegistryServer, **keys: object) -> str:
    section = RegistrySection.model_validate({"url": server.url, "timeout_s": 10, **keys})
    return open_client(section).fetch(SEVEN).text


def pair(cert: Path, key: Path) -> dict[str, str]:
    return {"tls_cert": str(cert), "tls_key": str(key), "tls_key_password": PASSWORD}


def test_with_a_certificate_of_the_authority_it_answers(
    server: RegistryServer, ours: Authority
) -> None:
    serve(server, ours)
    text = fetched(server, tls_ca=str(ours.file), **pair(*ours.signed("client", password=PASSWORD)))
    assert '"Row"' in text


def test_a_client_without_a_good_certificate_is_away_by_name(
    server: RegistryServer, ours: Authority, tmp_path: Path
) -> None:
    """None, another authority's, and one that has ended: TLS says which."""
    serve(server, ours)
    theirs = Authority(tmp_path, "theirs")
    cases = [
        ({}, "certificate required|handshake|reset|closed|disconnected"),
        (
            pair(*theirs.signed("stranger", password=PASSWORD)),
            "unknown ca|decrypt|reset|closed|disconnected",
        ),
        (pair(*ours.signed("old", -DAY, PASSWORD)), "expired|reset|closed|disconnected"),
    ]
    for keys, said in cases:
        with pytest.raises(RegistryAway, match=f"(?i){said}") as error:
            fetched(server, tls_ca=str(ours.file), **keys)
        assert error.value.cause == "unreachable"
    assert server.asked == []


@pytest.mark.parametrize(
    ("trusted", "ends_in", "said"),
    [("theirs", DAY, "certificate verify failed"), ("ours", -DAY, "certificate has expired")],
)
def test_a_registry_whose_certificate_is_not_good_gets_no_question(
    server: RegistryServer, ours: Authority, tmp_path: Path,
    trusted: str, ends_in: timedelta, said: str,
) -> None:  # fmt: skip
    """No login goes to a server that is not known to be the registry."""
    serve(server, ours, ends_in)
    authority = ours if trusted == "ours" else Authority(tmp_path, trusted)
    keys = {"basic_auth": "reader:secret", "tls_ca": str(authority.file)}
    with pytest.raises(RegistryAway, match=said) as error:
        fetched(server, **keys, **pair(*ours.signed("client", password=PASSWORD)))
    assert error.value.cause == "unreachable"
    assert (server.asked, server.logins) == ([], [])


def test_a_wrong_password_of_the_key_is_named(server: RegistryServer, ours: Authority) -> None:
    serve(server, ours)
    keys = {**pair(*ours.signed("client", password=PASSWORD)), "tls_key_password": "another"}
    with pytest.raises(RegistryAway, match="its TLS or login can't be used") as error:
        fetched(server, tls_ca=str(ours.file), **keys)
    assert error.value.cause == "refused"
