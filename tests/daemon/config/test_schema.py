"""The JSON schema takes what the daemon takes, and refuses what an editor can see."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from typing import Any

import jsonschema
import pytest
from typer.testing import CliRunner

from actors.runtime.java import CHECKOUT
from daemon.cli.__main__ import app
from daemon.cli.init.text import TablesPlace, configuration
from daemon.config.schema import config_schema
from tests.daemon.operations.checks.test_check import TEXT

VALID = jsonschema.Draft202012Validator(config_schema())


def files() -> list[str]:
    """The project's configurations, whole ones: deploy/yarn has the part that is about YARN."""
    found = subprocess.run(
        ["git", "ls-files", "*.toml"], cwd=CHECKOUT, capture_output=True, text=True, check=True
    ).stdout.split()
    texts = {name: (CHECKOUT / name).read_text(encoding="utf-8") for name in found}
    return [name for name, text in texts.items() if re.search(r"^\[pipeline\.", text, re.M)]


def problems(text: str) -> list[str]:
    found = VALID.iter_errors(tomllib.loads(text))
    return [f"{'.'.join(map(str, each.absolute_path))}: {each.message}" for each in found]


def test_the_schema_is_one() -> None:
    """By its own dialect; the command prints it."""
    jsonschema.Draft202012Validator.check_schema(config_schema())
    done = CliRunner().invoke(app, ["config", "schema"])
    assert (done.exit_code, json.loads(done.stdout)) == (0, config_schema())


@pytest.mark.parametrize("name", files())
def test_an_example_is_valid(name: str) -> None:
    """Each that the project has, with its references."""
    assert problems((CHECKOUT / name).read_text(encoding="utf-8")) == []


def test_there_are_examples() -> None:
    assert {"config.toml", "examples/sqlite.toml", "demo/s3.toml"} < set(files())


def test_what_init_writes_names_the_schema_and_fits_it() -> None:
    """An editor looks at the first comment alone."""
    text = configuration({"bootstrap.servers": "b:1"}, TablesPlace("a.db"), [], "var", ["shop"])
    assert text.startswith("#:schema ./binlogd.schema.json\n")
    assert problems(text) == []


@pytest.mark.parametrize(
    "more",
    [
        'max_age_s = "500 ms"', "max_age_s = 5", 'max_age_s = "${AGE}"', 'max_bytes = "64mib"',
        'max_bytes = "1_000"',
    ],
)  # fmt: skip
def test_units_and_references_are_valid(more: str) -> None:
    assert problems(f"{TEXT}[batch]\n{more}\n") == []


def test_short_forms_are_valid() -> None:
    """What a collector's pipeline leaves out, and keys that stand for others."""
    of_collector = TEXT.replace('topics = ["shop"]\nformat = "canal-json"', 'collector = "c"')
    assert problems(of_collector + '[collector.c]\ndatabase = "d"\n') == []
    assert problems(f'{TEXT}drop_columns = true\nstart = "latest"\n[spark]\nwriters = 2\n') == []


@pytest.mark.parametrize(
    ("more", "at"),
    [
        ("[batch]\nmax_byte = 1", "batch: "), ('[batch]\nmax_bytes = "5s"', "batch.max_bytes: "),
        ('[log]\nlevel = "loud"', "log.level: "), ("[memory]\nbudget_bytes = 1.5", "memory."),
        ("[daemon]\nwriters = 0", "daemon.writers: "), ("retention_s = 5", "pipeline.shop."),
    ],
)  # fmt: skip
def test_what_an_editor_can_see_is_refused(more: str, at: str) -> None:
    (found,) = problems(f"{TEXT}{more}\n")
    assert found.startswith(at)


def test_sections_and_keys_are_described() -> None:
    """By their docstrings, as Markdown."""
    defs: dict[str, Any] = config_schema()["$defs"]
    assert defs["BatchSection"]["description"].startswith("`[batch]`: when a batch is due.")
    primary = defs["DatabaseSection"]["properties"]["primary"]
    assert primary["description"] == (
        "Of a replica: the section of the server whose log is the stream."
    )
