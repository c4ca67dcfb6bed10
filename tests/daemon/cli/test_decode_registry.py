"""``binlogd decode`` of messages that name schemas of a registry."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from changes.formats.engine.format import unpack
from daemon.cli.__main__ import app
from tests.changes.formats.wire.records import Kept, json_record
from tests.daemon.config.test_registries import written
from tests.sources.registry.server import running


def decoded(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["decode", *arguments])
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture
def message(tmp_path: Path) -> Path:
    """One of Debezium's envelopes in Avro, and its schemas in ``the-registry``."""
    kept = Kept(tmp_path / "the-registry")
    value = unpack(kept.as_avro(json_record("c", {"id": 1, "name": "x"}))).value
    assert value is not None
    file = tmp_path / "message"
    file.write_bytes(value)
    return file


@pytest.mark.parametrize("format_", ["auto", "debezium"])
def test_a_schema_comes_from_the_registry(tmp_path: Path, message: Path, format_: str) -> None:
    """And the state directory stays as it is."""
    with running() as server:
        for file in (tmp_path / "the-registry").iterdir():
            schema = json.loads(file.read_text())
            server.ids[file.stem.removeprefix("id-")] = {"schema": schema["text"]}
        config = str(written(tmp_path, url=server.url))
        found = decoded(str(message), "--registry", "main", "-c", config, "--format", format_)
    assert found[0] == 0, found
    assert json.loads(found[1])["after"] == {"id": 1, "name": "x"}
    assert not (tmp_path / "state").exists()


def test_a_kept_one_needs_no_registry(tmp_path: Path, message: Path) -> None:
    """A dead letter is looked at while the registry is away."""
    config = str(written(tmp_path))
    (tmp_path / "state" / "schemas").mkdir(parents=True)
    (tmp_path / "the-registry").rename(tmp_path / "state" / "schemas" / "main")
    code, out, _ = decoded(str(message), "--registry", "main", "-c", config)
    assert (code, json.loads(out)["table"]) == (0, "shop.orders")


def test_a_registry_that_is_away_is_named(tmp_path: Path, message: Path) -> None:
    code, _, err = decoded(str(message), "--registry", "main", "-c", str(written(tmp_path)))
    assert code == 1
    assert "registry main gives no answer for schema id " in err
    assert "Connection refused" in err


def test_without_a_registry_the_message_is_named(message: Path) -> None:
    code, _, err = decoded(str(message))
    assert code == 1
    assert "of a schema registry, and no registry is configured" in err


def test_an_unknown_registry_is_refused(tmp_path: Path, message: Path) -> None:
    code, _, err = decoded(str(message), "--registry", "x", "-c", str(written(tmp_path)))
    assert (code, "there is no registry 'x'; have: main" in err) == (2, True)
