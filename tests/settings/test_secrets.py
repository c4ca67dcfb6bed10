"""Where secrets come from, what is said when they don't, and that they are never said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import structlog

from daemon.admin.logs import set_up_logs
from daemon.config.config import Config
from daemon.config.file import ConfigError, load
from daemon.config.sections import LogSection
from settings.secrets import LONGEST_BYTES, Redactor, looks_secret, secrets_in

TEXT = """
[kafka]
bootstrap.servers = "127.0.0.1:9092"
sasl.password = "%s"
[sink.lake]
kind = "iceberg"
[sink.lake.catalog]
type = "jdbc"
uri = "jdbc:sqlite:c.db"
warehouse = "w"
[pipeline.shop]
topics = ["shop"]
format = "canal-json"
target = "lake.{database}.{table}"
"""


def read(tmp_path: Path, value: str, more: str = "", **environment: str) -> Config:
    path = tmp_path / "config.toml"
    path.write_text(TEXT % value + more)
    return load(path, environment)


def problem(tmp_path: Path, value: str, **environment: str) -> str:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, value, **environment)
    (line,) = caught.value.problems
    return line.removeprefix(f"{tmp_path / 'config.toml'}: ")


def test_a_secret_is_a_files_text_without_the_newline(tmp_path: Path) -> None:
    """Editors add one; spaces belong to the secret. Relative paths count from the file's folder."""
    (tmp_path / "pw").write_text(" tide pool \n")
    config = read(tmp_path, "${file:pw}")
    assert config.kafka["sasl.password"] == " tide pool "
    assert " tide pool " in config.secrets


def test_a_credential_is_systemds(tmp_path: Path) -> None:
    """A file in $CREDENTIALS_DIRECTORY."""
    (tmp_path / "kafka").write_text("tide-pool")
    config = read(tmp_path, "${credential:kafka}", CREDENTIALS_DIRECTORY=str(tmp_path))
    assert config.kafka["sasl.password"] == "tide-pool"


def test_a_secret_of_the_environment_is_known_by_its_key(tmp_path: Path) -> None:
    """The name of the setting tells."""
    assert "tide-pool" in read(tmp_path, "${PW}", PW="tide-pool").secrets


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("${file:none}", "kafka.sasl.password: file {tmp}/none: can't be read: No such file"),
        ("${file:.}", "kafka.sasl.password: file {tmp}: can't be read: Is a directory"),
        ("${file:empty}", "kafka.sasl.password: file {tmp}/empty: is empty"),
        ("${file:bytes}", "kafka.sasl.password: file {tmp}/bytes: is not UTF-8 text"),
        ("${file:huge}", "kafka.sasl.password: file {tmp}/huge: is larger than 1048576 bytes"),
        ("${credential:a}", "kafka.sasl.password: credential a: CREDENTIALS_DIRECTORY is not set"),
        ("${PW}", "kafka.sasl.password: the environment variable PW is not set"),
        ("${NOTHING}", "kafka.sasl.password: the environment variable NOTHING is empty"),
        ("${NOTHING:-x}", "kafka.sasl.password: the environment variable NOTHING is empty"),
    ],
)
def test_a_secret_that_cannot_be_had_is_one_line(tmp_path: Path, value: str, expected: str) -> None:
    """The key, the place, the reason."""
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    (tmp_path / "huge").write_bytes(b"x" * (LONGEST_BYTES + 1))
    assert problem(tmp_path, value, NOTHING="").startswith(expected.replace("{tmp}", str(tmp_path)))


def test_a_secret_of_the_environment_may_be_empty_where_that_is_said(tmp_path: Path) -> None:
    """A default of nothing; and what is no secret may be empty anyhow."""
    assert read(tmp_path, "${NOTHING:-}", NOTHING="").kafka["sasl.password"] == ""
    config = read(tmp_path, "x", 'group = "shop${NOTHING}"', NOTHING="")
    assert config.pipeline["shop"].group == "shop"


def test_a_variable_that_is_no_text_is_refused(tmp_path: Path) -> None:
    """It would be half a character in each log and answer."""
    found = problem(tmp_path, "${PW}", PW="tide\udcff")
    assert found == "kafka.sasl.password: the environment variable PW is not UTF-8 text"


def test_a_credential_is_a_name(tmp_path: Path) -> None:
    """Not a way out of the folder."""
    found = problem(tmp_path, "${credential:../pw}", CREDENTIALS_DIRECTORY=str(tmp_path))
    assert found == "kafka.sasl.password: credential ../pw: a name is required, not a path"


def test_who_only_asks_the_daemon_needs_no_secret(tmp_path: Path) -> None:
    """``binlogd status`` runs as anybody who may open the socket."""
    path = tmp_path / "config.toml"
    path.write_text(TEXT % "${credential:kafka}")
    assert load(path, {}, lenient=True).daemon.state_dir == tmp_path / "var/state"


def test_a_wrong_value_is_not_repeated_when_it_is_secret(tmp_path: Path) -> None:
    """Of a telling key, or from a file: the error shows neither."""
    (tmp_path / "pw").write_text("tide-pool")
    path = tmp_path / "config.toml"
    text = TEXT.replace('kind = "iceberg"', 'kind = "${file:pw}"') % "x"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"sink\.lake\.kind: '\*\*\*'"):
        load(path, {})
    path.write_text(TEXT.replace("[pipeline", "token = 4411\n[pipeline") % "x")
    with pytest.raises(ConfigError) as caught:
        load(path, {})
    said = str(caught.value)
    assert "sink.lake.catalog.token" in said
    assert "tide-pool" not in said
    assert "4411" not in said


def test_a_secret_in_jvm_options_is_refused(tmp_path: Path) -> None:
    """They are a command line."""
    (tmp_path / "pw").write_text("tide-pool")
    more = '[spark.conf]\n"spark.driver.extraJavaOptions" = "-Dpw=${file:pw}"\n'
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, "x", more)
    assert "spark.conf.spark.driver.extraJavaOptions: holds a secret" in str(caught.value)
    assert "tide-pool" not in str(caught.value)


@pytest.mark.parametrize(
    ("key", "secret"),
    [
        ("sasl.password", True), ("ssl.key.password", True), ("ssl.key.pem", True),
        ("s3.secret-access-key", True), ("s3.access-key-id", True), ("token", True),
        ("sasl.jaas.config", True), ("fs.s3a.secret.key", True), ("oauth2.credential", True),
        ("ssl.key.location", False), ("sasl.username", False), ("bootstrap.servers", False),
        ("monkey", False), ("oauth2-server-token-uri", False),
    ],
)  # fmt: skip
def test_names_of_secrets(key: str, secret: bool) -> None:
    """What holds one, and what is only about one."""
    assert looks_secret(key) is secret


def test_passwords_inside_other_values_are_secrets(tmp_path: Path) -> None:
    """In a URI and in a JAAS line."""
    more = "[pipeline.shop.kafka]\nsasl.jaas.config = 'x password=\"inner-one\";'\n"
    text = (TEXT % "x").replace("jdbc:sqlite:c.db", "jdbc:postgresql://h/d?user=u&password=inner2")
    (tmp_path / "config.toml").write_text(text + more)
    assert {"inner-one", "inner2"} <= load(tmp_path / "config.toml", {}).secrets


def test_longer_secrets_go_first() -> None:
    """One may be a part of another; the rest of it would tell."""
    assert Redactor(["tide", "tide-pool"]).text("a tide-pool, a tide") == "a ***, a ***"


@pytest.mark.parametrize("form", ["json", "text"])
def test_no_secret_in_the_log(tmp_path: Path, form: str) -> None:
    """Not in a field, a nested one, a traceback, nor in what a frame's variables hold."""
    secret = 'tide"pool\\4411\nline'
    section = LogSection(format=form, file=str(tmp_path / "log"), level="debug")  # type: ignore[arg-type]
    set_up_logs(section, Redactor([secret]))
    log = structlog.get_logger()
    log.info("one", reason=f"login with {secret} failed", nested={"a": [secret]})
    try:
        settings = {"sasl.password": secret}
        raise ValueError(f"bad settings {settings}")
    except ValueError:
        log.exception("two")
    text = (tmp_path / "log").read_text()
    assert "ValueError" in text
    assert text.count("***") >= 3
    for spelled in (secret, repr(secret)[1:-1], json.dumps(secret)[1:-1], "tide", "4411"):
        assert spelled not in text


def test_a_password_of_digits_is_one_even_without_quotes() -> None:
    """TOML takes it for a number, librdkafka for text; a switch is no secret."""
    found = list(secrets_in({"sasl.password": 774411, "ssl.key.password": True, "port": 9092}))
    assert found == ["774411"]
