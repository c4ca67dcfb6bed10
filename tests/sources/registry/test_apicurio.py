"""Both clients and the keeper against a real Apicurio registry."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from actors.contract import messages as msg
from changes.formats.wire.schemas import Reference, Schema, SchemaId
from demo.servers.apicurio import Apicurio
from demo.servers.server import ask_json
from sources.registry.client import RegistryClient, open_client
from sources.registry.errors import RegistryAway, SchemaNotFound
from sources.registry.section import RegistrySection
from tests.needs import needed
from tests.sources.registry.test_keeper import FETCHER, Told

pytestmark = [pytest.mark.integration, pytest.mark.long, pytest.mark.timeout(300)]

ROW = '{"type":"record","name":"Row","namespace":"x","fields":[{"name":"a","type":"int"}]}'
OTHER = '{"type":"record","name":"Other","fields":[]}'
TOP = '{"type":"record","name":"Top","fields":[{"name":"r","type":"x.Row"}]}'
PROTO = 'syntax = "proto3"; message M { int32 a = 1; }'
JSON = '{"type":"object","properties":{"a":{"type":"integer"}}}'


@pytest.fixture
def apicurio(tmp_path: Path) -> Iterator[Apicurio]:
    with needed(), Apicurio(tmp_path / "apicurio") as registry:
        yield registry


def register(
    registry: Apicurio, subject: str, schema: str, kind: str = "AVRO", **more: object
) -> str:
    body = {"schema": schema, "schemaType": kind, **more}
    request = Request(
        f"{registry.confluent_url}/subjects/{subject}/versions",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    with urlopen(request, timeout=20) as answer:
        return str(json.load(answer)["id"])


def global_id(registry: Apicurio, content: str) -> str:
    """The other number of a schema that one version alone has."""
    address = f"{registry.root}/apis/registry/v3/search/versions?contentId={content}"
    (version,) = ask_json(address)["versions"]
    return str(version["globalId"])


def clients(registry: Apicurio) -> dict[str, RegistryClient]:
    """By the kind of number that each takes."""
    own = open_client(RegistrySection(url=registry.root, kind="apicurio"))
    return {
        "id": open_client(RegistrySection(url=registry.confluent_url)),
        "content": own,
        "global": own,
    }


def test_schemas_of_all_kinds_come_with_their_references(apicurio: Apicurio) -> None:
    """By Confluent's id, by content id, and by global id."""
    register(apicurio, "row", ROW)
    reference = {"name": "x.Row", "subject": "row", "version": 1}
    wanted = {
        register(apicurio, "top", TOP, references=[reference]): Schema(
            "AVRO", TOP, (Reference("x.Row", ROW),)
        ),
        register(apicurio, "m", PROTO, "PROTOBUF"): Schema("PROTOBUF", PROTO),
        register(apicurio, "j", JSON, "JSON"): Schema("JSON", JSON),
    }
    asked = clients(apicurio)
    for kind in ("id", "content"):
        for number, schema in wanted.items():
            assert asked[kind].fetch(SchemaId(kind, number)) == schema  # type: ignore[arg-type]
    global_ids = {number: global_id(apicurio, number) for number in wanted}
    for number, schema in wanted.items():
        assert asked["global"].fetch(SchemaId("global", global_ids[number])) == schema
    for kind, client in asked.items():
        client.check()
        with pytest.raises(SchemaNotFound, match=f"schema {kind} 99"):
            client.fetch(SchemaId(kind, "99"))  # type: ignore[arg-type]


def test_a_wrong_address_says_nothing_of_a_schema(apicurio: Apicurio) -> None:
    """Each API's address in the other's place: no 404 of these makes a bad record."""
    for kind, url, identity in (
        ("confluent", apicurio.root, SchemaId("id", "1")),
        ("apicurio", apicurio.confluent_url, SchemaId("content", "1")),
    ):
        client = open_client(RegistrySection.model_validate({"kind": kind, "url": url}))
        with pytest.raises(RegistryAway):
            client.fetch(identity)
        with pytest.raises(RegistryAway):
            client.check()


def test_a_killed_registry_comes_back_and_an_emptied_one_is_found(
    apicurio: Apicurio, tmp_path: Path
) -> None:
    """Killed it is away, and nothing more; with its numbers given anew it is refused."""
    number = SchemaId("id", register(apicurio, "row", ROW))
    told = Told(apicurio.confluent_url, tmp_path / "main")
    apicurio.kill()
    told.keeper.want(FETCHER, (number,))
    state = told.next()
    assert isinstance(state, msg.RegistryState)
    assert state.away is not None
    apicurio.start()
    said = [told.next()]
    while not isinstance(said[-1], msg.SchemasKept):
        said.append(told.next())
    told.keeper.close()
    apicurio.kill()
    apicurio.forget()
    apicurio.start()
    assert register(apicurio, "other", OTHER) == number.value
    late = Told(apicurio.confluent_url, tmp_path / "main")
    assert late.keeper.want(FETCHER, (number,)) == (number,)
    refused = late.next()
    assert isinstance(refused, msg.SchemaRefused)
    assert "is another one than before" in refused.reason
    late.keeper.close()
