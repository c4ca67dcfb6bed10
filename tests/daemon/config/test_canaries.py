"""A text of its own in each place where a secret may be: none of them leaves."""

from __future__ import annotations

import json
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel
from typer.testing import CliRunner

from daemon.cli.__main__ import app
from daemon.config.config import Config
from daemon.config.file import ConfigError, load
from daemon.config.shown import HIDDEN, SHOWN, form_of, holds_text, shown
from settings.secrets import Redactor, masked

PEM = """-----BEGIN PRIVATE KEY-----
canaryAAAABBBBCCCCDDDD
canaryEEEEFFFFGGGGHHHH
-----END PRIVATE KEY-----"""
TEXT = f"""
# sasl.password = "canary-in-a-comment"
[kafka]
"bootstrap.servers" = "127.0.0.1:1"
"sasl.jaas.config" = 'x required username="u" password="canary-jaas\\"s";'
"sasl.password" = "canary-sasl"  # formerly canary-comment
"ssl.key.password" = "canary-key"
"ssl.key.pem" = '''{PEM}'''
[spark.conf]
"spark.hadoop.fs.s3a.secret.key" = "canary-s3a"
"spark.hadoop.fs.s3a.access.key" = "canary-access"
"spark.hadoop.fs.azure.account.key.x" = "canary-azure"
"spark.some.url" = "jdbc:postgresql://h/d?user=u&password=canary-param&x=y"
[sink.lake]
kind = "iceberg"
[sink.lake.catalog]
type = "rest"
uri = "https://user:canary-user@127.0.0.1/"
warehouse = "w"
"header.Authorization" = "Bearer canary-bearer"
"header.X-Api-Key" = "canary-header"
credential = "id:canary-credential"
[sink.f]
kind = "python"
entry = "a:b"
state = "f"
[sink.f.settings]
tokens = ["canary-list", "canary-list2"]
passwd = "canary-passwd"
pwd = "canary-pwd"
apikey = "canary-apikey"
dsn = "host=h user=u password='canary-dsn\\\\'s word' dbname=d"
dsn2 = "host=h password=canary-dsn2 dbname=d"
plain = "postgres://u:canary/slash@h/d"
numbers = {{pin_token = 4455667788}}
[sink.f.settings.deep]
list = [{{api_key = "canary-deep"}}]
[sink.db]
kind = "jdbc"
url = "jdbc:postgresql://127.0.0.1:1/d"
user = "u"
password = "canary-sink"
[database.source]
url = "jdbc:mysql://127.0.0.1:1/d"
user = "u"
password = "canary-database"
[registry.main]
url = "https://127.0.0.1:1"
basic_auth = "u:canary-registry"
tls_cert = "c"
tls_key_password = "canary-registry-key"
[registry.token]
url = "https://127.0.0.1:1"
bearer_token = "canary-registry-token"
[registry.oauth]
url = "https://127.0.0.1:1"
[registry.oauth.oauth]
token_url = "https://127.0.0.1:1"
client_id = "i"
client_secret = "canary-registry-secret"
[collector.erp]
url = "oracle://127.0.0.1:1/d"
user = "u"
password = "canary-collector"
topic = "t"
[collector.erp.config]
"some.password" = "canary-option"
[connect.kafka]
"ssl.keystore.password" = "canary-connect"
[events]
webhook = "https://127.0.0.1/canary-hook"
[gates.g]
tables = ["lake.a.t"]
every = "1d"
topic = "told"
webhook = "https://127.0.0.1/canary-gate"
webhook_secret = "canary-gate-secret"
[gates.g.kafka]
"ssl.keystore.password" = "canary-gate-kafka"
[metrics]
token = "canary-metrics-token"
[tracing]
endpoint = "http://127.0.0.1:1"
headers = {{x = "canary-trace"}}
[pipeline.p]
topics = ["t"]
format = "canal-json"
encryption_key = "canary-encrypt"
database = "source"
[pipeline.p.kafka]
"ssl.keystore.password" = "canary-keystore"
[[pipeline.p.route]]
tables = ["a.*"]
target = "lake.{{database}}.{{table}}"
mask = {{name = "sha256"}}
mask_salt = "canary-salt-of-16-characters"
"""
WITHOUT_COMMENTS = "".join(
    line.split("  #")[0] + "\n" for line in TEXT.splitlines() if not line.startswith("#")
)
CANARY = re.compile(r"canary|4455667788")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "config.toml"
    path.write_text(TEXT)
    return path


def test_the_configuration_s_secrets_are_known(file: Path) -> None:
    """In whatever form a log, an error or a page repeats them."""
    config = load(file)
    for line in TEXT.splitlines():
        if CANARY.search(line) and not line.startswith("#"):
            said = config.redactor.text(line.split("  #")[0])
            assert not CANARY.search(said), said
    said = json.dumps(config.redactor.deep(config.model_dump(mode="json")))
    assert not CANARY.search(said)
    assert not CANARY.search(config.redactor.text(str(config.kafka) + repr(config.sink)))


def test_no_command_shows_one(file: Path) -> None:
    """The bundle with logs that repeat the file, the check, and what it says of problems."""
    state = load(file).daemon.state_dir
    state.mkdir(parents=True)
    (state / "jvm.log").write_text(WITHOUT_COMMENTS)
    out = file.parent / "out.tar.gz"
    bundle = CliRunner().invoke(app, ["support-bundle", "-c", str(file), "-o", str(out)])
    assert bundle.exit_code == 0
    with tarfile.open(out) as found:
        texts = {e.name: found.extractfile(e).read().decode() for e in found}  # type: ignore[union-attr]
    for name, text in texts.items():
        assert not CANARY.search(text), (name, text)
    config = json.loads(texts["out/config.json"])
    (deep,) = config["sink"]["f"]["settings"]["deep"]["list"]
    assert deep["api_key"] in ("(a text)", "***")
    check = CliRunner().invoke(app, ["check-config", "-c", str(file)])
    assert not CANARY.search(check.output + check.stderr)


def broken() -> Iterator[str]:
    lines = TEXT.splitlines()
    for at, line in enumerate(lines):
        if CANARY.search(line) and " = " in line and not line.startswith("#"):
            key, _, value = line.partition(" = ")
            for bad in (
                line.rstrip("'\"}]"), f"{key} = [{value}]", f"{key} = {{x = {value}}}",
                f"{key} {value}", f"{key} = {value} {value}", f"{line}\n{line}",
                f"{key.strip()}x = {value}", line.replace("canary", "$" + "{canary"),
            ):  # fmt: skip
                yield "\n".join([*lines[:at], bad, *lines[at + 1 :]])


def test_no_error_of_a_broken_file_shows_one(tmp_path: Path) -> None:
    """Cut in the middle, of another type, twice, with a misspelt key or reference."""
    path = tmp_path / "config.toml"
    said = []
    for text in broken():
        path.write_text(text)
        try:
            load(path)
        except ConfigError as error:
            said.append(str(error))
    assert len(said) > 100
    assert [text for text in said if CANARY.search(text)] == []


@pytest.mark.parametrize(
    "text",
    [
        "could not connect: host=h password='canary\\'s x' dbname=d",
        'FATAL: password="canary" is wrong', "GET /?token=canary&x HTTP/1.1",
        "Authorization: Bearer canary-canary", "http://u:canary@h/", "pwd=canary;", PEM,
        "{'api_key': 'canary'}", '{"secret": "canary"}',
        "eyJcanarycanary.eyJcanary.canary",
    ],
)  # fmt: skip
def test_what_looks_like_a_secret_is_masked_in_texts_of_others(text: str) -> None:
    """Also where it is no secret of the configuration."""
    assert "canary" not in masked(text)
    assert masked("users.password of lake.s.t: the key is wrong") == (
        "users.password of lake.s.t: the key is wrong"
    )


def sections() -> dict[str, type[BaseModel]]:
    found: dict[str, type[BaseModel]] = {}

    def walk(annotation: Any) -> None:
        is_section = isinstance(annotation, type) and issubclass(annotation, BaseModel)
        if is_section and annotation.__name__ not in found:
            found[annotation.__name__] = annotation
            for field in annotation.model_fields.values():
                walk(field.annotation)
        for part in get_args(annotation):
            walk(part)

    walk(Config)
    return found


def test_each_text_of_the_configuration_is_marked() -> None:
    """A new key is shown, or hidden, by a decision."""
    texts = {
        (name, field)
        for name, section in sections().items()
        for field, info in section.model_fields.items()
        if holds_text(info.annotation)
    }
    listed = [(name, field) for marks in (SHOWN, HIDDEN) for name in marks for field in marks[name]]
    assert texts == set(listed)
    assert len(listed) == len(set(listed))


def test_what_is_not_marked_has_a_form_alone() -> None:
    assert form_of({"a": ["x", 1, True, ""], "b": None}) == {
        "a": ["(a text)", "(a number)", "(true or false)", "(empty)"], "b": None,
    }  # fmt: skip
    assert shown({"a": "x"}) == {"a": "(a text)"}


def test_a_short_or_common_word_is_no_secret(file: Path) -> None:
    """A switch whose name sounds so, or a column in a filter, would leave nothing to read."""
    assert Redactor(["abc"]).text("abc") == "abc"
    text = TEXT.replace('credential = "id', '"token-refresh" = "true"\ncredential = "id')
    file.write_text(text.replace("mask_salt", 'filter = "token = status"\nmask_salt', 1))
    assert load(file).redactor.text("true status") == "true status"
