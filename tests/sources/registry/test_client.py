"""The client of registries against a real HTTP server: what it fetches, and what it calls away."""

from __future__ import annotations

import base64
import json
import socket
from collections.abc import Iterator

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from changes.formats.wire.schemas import Reference, Schema, SchemaId
from sources.registry.client import DEEPEST, RegistryClient, open_client
from sources.registry.errors import RegistryAway, SchemaNotFound, SchemaUnfit
from sources.registry.section import OAuthSection, RegistrySection
from tests.sources.registry.server import RegistryServer, running

SEVEN = SchemaId("id", "7")


@pytest.fixture
def server() -> Iterator[RegistryServer]:
    with running() as registry:
        yield registry


def client(server: RegistryServer, **keys: object) -> RegistryClient:
    return open_client(RegistrySection.model_validate({"url": server.url, **keys}))


def away(asked: RegistryClient) -> RegistryAway:
    with pytest.raises(RegistryAway) as found:
        asked.fetch(SEVEN)
    return found.value


def test_a_schema_comes_by_its_id_and_by_its_guid(server: RegistryServer) -> None:
    """The answer without a type is Avro's."""
    server.ids["7"] = server.guids["a-b"] = {"schema": '"long"'}
    assert client(server).fetch(SEVEN) == Schema("AVRO", '"long"')
    assert client(server).fetch(SchemaId("guid", "a-b")) == Schema("AVRO", '"long"')


def test_references_come_with_it_whole(server: RegistryServer) -> None:
    """Also those of references, of a subject whose name an address must quote."""
    reference = {"name": "x.R", "subject": "a/b c", "version": 2}
    inner = {"name": "x.I", "subject": "i", "version": 1}
    server.ids["7"] = {"schema": "top", "schemaType": "JSON", "references": [reference]}
    server.versions["a%2Fb%20c", "2"] = {"schema": "r", "references": [inner]}
    server.versions["i", "1"] = {"schema": "i"}
    wanted = (Reference("x.R", "r", (Reference("x.I", "i"),)),)
    assert client(server).fetch(SEVEN) == Schema("JSON", "top", wanted)


def test_references_that_go_in_a_circle_end(server: RegistryServer) -> None:
    reference = {"name": "r", "subject": "r", "version": 1}
    server.ids["7"] = {"schema": "top", "references": [reference]}
    server.versions["r", "1"] = server.ids["7"]
    with pytest.raises(SchemaUnfit, match=f"{DEEPEST} deep"):
        client(server).fetch(SEVEN)


def test_a_reference_that_is_not_there_is_named(server: RegistryServer) -> None:
    reference = {"name": "x.R", "subject": "r", "version": 1}
    server.ids["7"] = {"schema": "top", "references": [reference]}
    with pytest.raises(SchemaNotFound, match=r"x\.R, which it refers to \(r 1\)"):
        client(server).fetch(SEVEN)


def test_protobuf_comes_compiled_where_the_registry_does_that(server: RegistryServer) -> None:
    """Apicurio's answer to the same question is damaged bytes: then it is the text."""
    descriptor = FileDescriptorProto(name="m.proto")
    descriptor.message_type.add(name="M")
    compiled = base64.b64encode(descriptor.SerializeToString()).decode()
    server.ids["7"] = {"schema": "text", "schemaType": "PROTOBUF", "serialized": compiled}
    assert client(server).fetch(SEVEN) == Schema("PROTOBUF", compiled)
    server.ids["7"]["serialized"] = descriptor.SerializeToString().decode("latin-1")
    assert client(server).fetch(SEVEN) == Schema("PROTOBUF", "text")


@pytest.mark.parametrize("status", [500, 503])
def test_a_registry_whose_compiler_fails_gives_the_text(
    server: RegistryServer, status: int
) -> None:
    """That it answered the question before shows that it is there; 503 is an outage anyway."""
    server.ids["7"] = {"schema": "text", "schemaType": "PROTOBUF"}
    fails = (status, {}, b'{"message":"unable to find confluent/type/decimal.proto"}')
    server.ill = lambda path: fails if "serialized" in path else None
    if status == 500:
        assert client(server).fetch(SEVEN) == Schema("PROTOBUF", "text")
    else:
        with pytest.raises(RegistryAway, match="HTTP 503"):
            client(server).fetch(SEVEN)


def test_another_type_is_named(server: RegistryServer) -> None:
    server.ids["7"] = {"schema": "<x/>", "schemaType": "XML"}
    with pytest.raises(SchemaUnfit, match="schema id 7 is XML"):
        client(server).fetch(SEVEN)


def test_a_schema_that_is_not_there_is_no_outage(server: RegistryServer) -> None:
    with pytest.raises(SchemaNotFound, match="schema id 7: Schema not found"):
        client(server).fetch(SEVEN)


@pytest.mark.parametrize(
    ("status", "body", "cause", "said"),
    [
        (401, b"no", "refused", "the login is refused"),
        (403, b"no", "refused", "reading is not allowed"),
        (500, b"x", "fault", "HTTP 500"),
        (503, b"x", "fault", "HTTP 503"),
        (429, b"x", "fault", "HTTP 429"),
        (404, b"<html>", "answer", "HTTP 404 without JSON"),
        (404, b'{"error_code":404,"message":"HTTP 404 Not Found"}', "answer", "404 without a"),
        (200, b"[]", "answer", "not a registry's answer"),
        (200, b"{}", "answer", "without a schema"),
        (400, b"x", "answer", "HTTP 400"),
    ],
)
def test_each_illness_has_its_name(
    server: RegistryServer, status: int, body: bytes, cause: str, said: str
) -> None:
    """A wrong path, whose 404 is a proxy's, is no schema that is missing."""
    server.ill = lambda path: (status, {}, body)
    error = away(client(server))
    assert error.cause == cause
    assert said in str(error)


def test_nothing_is_asked_twice_by_itself(server: RegistryServer) -> None:
    """The caller waits in between; here nobody sleeps."""
    server.ill = lambda path: (503, {}, b"")
    away(client(server))
    assert len(server.asked) == 1


def test_a_redirect_is_not_followed(server: RegistryServer) -> None:
    """It would take the password elsewhere."""
    server.ill = lambda path: (302, {"Location": "http://127.0.0.1:1/"}, b"")
    error = away(client(server, basic_auth="u:p"))
    assert error.cause == "redirect"
    assert "set url to http://127.0.0.1:1/" in str(error)
    assert len(server.asked) == 1


def test_a_registry_that_hangs_is_given_up(server: RegistryServer) -> None:
    server.gate.clear()
    error = away(client(server, timeout_s=0.2))
    assert (error.cause, "within 0.2 s" in str(error)) == ("timeout", True)


def test_a_registry_that_is_down_is_away(server: RegistryServer) -> None:
    server.stop()
    assert away(client(server)).cause == "unreachable"


def test_a_second_address_stands_in_for_the_first(server: RegistryServer) -> None:
    """Of one that is down, and of one that is ill."""
    server.avro(7, "id")
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        down = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        found = client(server, url=[down, server.url]).fetch(SEVEN)
    assert json.loads(found.text)["name"] == "Row"
    with running() as ill:
        ill.ill = lambda path: (500, {}, b"")
        assert client(server, url=[ill.url, server.url]).fetch(SEVEN) == found


def test_a_login_goes_with_each_question(server: RegistryServer) -> None:
    server.avro(7, "id")
    client(server, basic_auth="u:p:x").fetch(SEVEN)
    client(server, bearer_token="t").fetch(SEVEN)
    basic = base64.b64encode(b"u:p:x").decode()
    assert server.logins == [f"Basic {basic}", "Bearer t"]


def test_a_token_is_fetched_and_fetched_again_once_it_is_refused(server: RegistryServer) -> None:
    """The registry's 401 says that it has ended, whatever its own clock said."""
    server.avro(7, "id")
    tokens = iter("abc")

    def ill(path: str) -> tuple[int, dict[str, str], bytes] | None:
        if path == "/token":
            token = {"access_token": next(tokens), "token_type": "Bearer", "expires_in": 3600}
            return 200, {}, json.dumps({**token, "expires_at": 4e9}).encode()
        return (401, {}, b"expired") if server.logins[-1] == "Bearer a" else None

    server.ill = ill
    oauth = OAuthSection(token_url=f"{server.url}/token", client_id="i", client_secret="s")
    asked = open_client(RegistrySection(url=server.url, oauth=oauth))
    assert away(asked).cause == "refused"
    assert json.loads(asked.fetch(SEVEN).text)["name"] == "Row"
    asked.fetch(SEVEN)
    assert server.logins.count("Bearer b") == 2


def test_a_token_that_can_t_be_had_is_a_login_refused(server: RegistryServer) -> None:
    server.ill = lambda path: (401, {}, b'{"error":"invalid_client"}')
    oauth = OAuthSection(token_url=f"{server.url}/token", client_id="i", client_secret="s")
    error = away(open_client(RegistrySection(url=server.url, oauth=oauth)))
    assert error.cause == "refused"
    assert "no token from" in str(error)


def test_certificates_that_are_not_there_are_named() -> None:
    with pytest.raises(RegistryAway, match="its TLS or login can't be used"):
        open_client(RegistrySection(url="https://127.0.0.1:1", tls_ca="/not/there.pem"))


def test_apicurio_s_ids_need_its_kind(server: RegistryServer) -> None:
    """And Confluent's the other; the frames decide, so this is a mistake in the file."""
    with pytest.raises(SchemaUnfit, match='kind = "apicurio"'):
        client(server).fetch(SchemaId("content", "7"))
    with pytest.raises(SchemaUnfit, match='kind = "confluent"'):
        client(server, kind="apicurio").fetch(SEVEN)
