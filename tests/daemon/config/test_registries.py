"""``[registry.NAME]``: what is taken, what each mistake is answered with, and rotated secrets."""

from __future__ import annotations

from pathlib import Path

import pytest

from changes.model.registry import Registry
from daemon.config.config import Config
from daemon.config.file import ConfigError, load
from daemon.operations.reload.difference import difference
from settings.rotation import current_registry
from tests.daemon.operations.checks.test_check_databases import checked
from tests.sources.registry.server import running

TEXT = """
[kafka]
bootstrap.servers = "127.0.0.1:1"
[daemon]
state_dir = "state"
[sink.copy]
kind = "sqlite"
path = "copy.db"
[pipeline.shop]
topics = ["shop"]
format = "debezium"
target = "copy.{database}.{table}"
registry = "main"
[registry.main]
url = "URL"
"""


def written(folder: Path, more: str = "", url: str = "http://127.0.0.1:1") -> Path:
    path = folder / "config.toml"
    path.write_text(TEXT.replace("URL", url) + more)
    return path


def read(folder: Path, more: str = "") -> Config:
    return load(written(folder, more), {})


def problem(folder: Path, more: str, **replaced: str) -> str:
    path = written(folder, more)
    for old, new in replaced.items():
        path.write_text(path.read_text().replace(old, new))
    with pytest.raises(ConfigError) as caught:
        load(path, {})
    (found,) = caught.value.problems
    return found.removeprefix(f"{path}: ")


def test_formats_get_the_folder_of_the_schemas(tmp_path: Path) -> None:
    """In the state directory, under the registry's name."""
    config = read(tmp_path, 'kind = "apicurio"\nids = "global"')
    registry = Registry("apicurio", tmp_path / "state" / "schemas" / "main", "global")
    assert config.format_options("shop").registry == registry


def test_a_pipeline_without_one_has_none(tmp_path: Path) -> None:
    path = written(tmp_path)
    path.write_text(path.read_text().replace('registry = "main"', ""))
    assert load(path, {}).format_options("shop").registry is None


def test_paths_of_certificates_count_from_the_files_folder(tmp_path: Path) -> None:
    section = read(tmp_path, 'tls_ca = "ca.pem"\ntls_cert = "/c.pem"').registry["main"]
    assert (section.tls_ca, section.tls_cert) == (str(tmp_path / "ca.pem"), "/c.pem")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ('basic_auth = "nobody"', 'basic_auth: "USER:PASSWORD" is required'),
        ('basic_auth = "u:pass"\nbearer_token = "token"', "one way to log in is required"),
        ('tls_key = "k"', "tls_key: without tls_cert"),
        ('ids = "global"', 'ids: only kind = "apicurio"'),
        ("timeout_s = 0", "timeout_s: Input should be greater than 0"),
        ('kind = "karapace"', "kind: Input should be 'confluent' or 'apicurio'"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, more: str, said: str) -> None:
    assert said in problem(tmp_path, more)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("registry:8081", "'registry:8081' is no address such as"),
        ("http://a:1,http://b:1", "is no address such as"),
        ("http://u:secret-word@h:1", "a user and a password belong into basic_auth"),
    ],
)
def test_addresses_are_plain_ones(tmp_path: Path, url: str, said: str) -> None:
    """A password in one would be shown in errors."""
    path = written(tmp_path, url=url)
    with pytest.raises(ConfigError) as caught:
        load(path, {})
    assert said in str(caught.value)
    assert "secret-word" not in str(caught.value)


def test_an_unknown_one_is_refused_with_those_that_are_there(tmp_path: Path) -> None:
    said = problem(tmp_path, "", **{'registry = "main"': 'registry = "other"'})
    assert said == "pipeline.shop.registry: there is no registry 'other'; have: main"


def test_a_format_that_has_no_use_of_one_is_refused(tmp_path: Path) -> None:
    """The records would be bad ones, and the file would look right."""
    said = problem(tmp_path, "", debezium="debezium-json")
    assert said == (
        "pipeline.shop.registry: records of debezium-json name no schema; those of auto, debezium, "
        "upsert may"
    )


def test_a_secret_in_a_file_is_read_again(tmp_path: Path) -> None:
    """And nothing else of the section: that takes a restart."""
    token = tmp_path / "token"
    token.write_text("first-token")
    config = read(tmp_path, 'bearer_token = "${file:token}"')
    token.write_text("second-token")
    written(tmp_path, 'bearer_token = "${file:token}"', url="http://127.0.0.1:2")
    section = current_registry(config, "main")
    assert (section.bearer_token, section.urls) == ("second-token", ["http://127.0.0.1:1"])
    assert config.redactor.text("first-token second-token") == "*** ***"


def test_a_reload_names_what_takes_a_restart(tmp_path: Path) -> None:
    """The client lives as long as the process; a rotated secret is no difference."""
    (tmp_path / "token").write_text("first-token")
    old = read(tmp_path, 'bearer_token = "${file:token}"')
    (tmp_path / "token").write_text("second-token")
    assert difference(old, read(tmp_path, 'bearer_token = "${file:token}"')).empty
    new = read(tmp_path, 'bearer_token = "${file:token}"\ntimeout_s = 5')
    assert difference(old, new).restart == ("registry.main",)


def test_the_check_asks_the_registry(tmp_path: Path) -> None:
    """It is in the plan; unused it is a warning."""
    with running() as server:
        code, output = checked(written(tmp_path, 'basic_auth = "u:hidden-word"', server.url))
        assert code == 0, output
        assert f"registry main: {server.url} (confluent), of shop; kept in" in output
        path = written(tmp_path, url=server.url)
        path.write_text(path.read_text().replace('registry = "main"', ""))
        assert "registry.main: no pipeline names it" in checked(path)[1]


def test_the_check_says_what_is_wrong_with_it(tmp_path: Path) -> None:
    from daemon.operations.checks.check_registries import silent_registries

    with running() as server:
        config = load(written(tmp_path, url=server.url), {})
        assert list(silent_registries(config)) == []
        server.ill = lambda path: (403, {}, b"no")
        (line,) = silent_registries(config)
        assert line.startswith(f"registry.main: {server.url}: reading is not allowed (HTTP 403)")
    code, output = checked(written(tmp_path, 'tls_ca = "not-there.pem"'))
    assert code == 2
    assert "registry.main: its TLS or login can't be used" in output
