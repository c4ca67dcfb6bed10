"""The test registry: a kill takes no schema away, and an emptied one gives ids another meaning."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from demo.servers.apicurio import Apicurio
from demo.servers.server import ask_json
from tests.needs import needed

pytestmark = [pytest.mark.integration, pytest.mark.long, pytest.mark.timeout(300)]


def _register(registry: Apicurio, name: str) -> int:
    schema = json.dumps({"type": "record", "name": name, "fields": []})
    request = Request(
        f"{registry.confluent_url}/subjects/{name}-value/versions",
        json.dumps({"schema": schema}).encode(),
        {"Content-Type": "application/json"},
    )
    with urlopen(request, timeout=20) as answer:
        return int(json.load(answer)["id"])


def _name(registry: Apicurio, id_: int) -> str | None:
    found = ask_json(f"{registry.confluent_url}/schemas/ids/{id_}")
    return json.loads(found["schema"])["name"] if found else None


def test_a_kill_takes_no_schema_away_and_an_emptied_registry_uses_ids_again(tmp_path: Path) -> None:
    """Both are what runs of binlogd are tested against."""
    with needed(), Apicurio(tmp_path) as registry:
        orders = _register(registry, "orders")
        registry.kill()
        assert _name(registry.start(), orders) == "orders"
        registry.kill()
        registry.forget()
        registry.start()
        assert _name(registry, orders) is None
        assert _register(registry, "items") == orders
        assert _name(registry, orders) == "items"
