"""The bundle: all that helps, no secret, and a line for what could not be had."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from daemon.cli.__main__ import app
from daemon.cli.support import bundle
from daemon.state.control import ControlServer

SECRET, PLAIN = "the-secret-of-a-file", "the-password-in-the-text"


def write_config(folder: Path) -> Path:
    (folder / "secret").write_text(SECRET)
    (folder / "state").mkdir()
    path = folder / "config.toml"
    path.write_text(f"""
        [daemon]
        state_dir = "state"
        [log]
        file = "b.log"
        [kafka]
        "bootstrap.servers" = "127.0.0.1:1"
        "sasl.password" = "${{file:secret}}"
        "ssl.key.password" = "{PLAIN}"
        [sink.copy]
        kind = "sqlite"
        path = "copy.db"
        [pipeline.p]
        topics = ["t"]
        format = "auto"
        target = "copy.{{database}}.{{table}}"
    """)
    return path


def run(config: Path, *more: str) -> Result:
    output = ["--output", str(config.parent / "out.tar.gz")]
    return CliRunner().invoke(app, ["support-bundle", "--config", str(config), *output, *more])


def read(config: Path) -> dict[str, str]:
    with tarfile.open(config.parent / "out.tar.gz") as found:
        return {
            entry.name.removeprefix("out/"): found.extractfile(entry).read().decode()  # type: ignore[union-attr]
            for entry in found
        }


def test_it_has_what_helps_and_no_secret(tmp_path: Path) -> None:
    """A running daemon's status; logs, positions, versions; secrets of files and of the text."""
    config = write_config(tmp_path)
    (tmp_path / "b.log").write_text(f"an event with {SECRET} in it\n")
    (tmp_path / "state" / "jvm.log").write_text(f"a line with {PLAIN}\n")
    server = ControlServer(tmp_path / "state", {"status": lambda _: {"state": "running"}})
    server.start()
    try:
        done = run(config)
    finally:
        server.close()
    assert (done.exit_code, done.stderr) == (0, "")
    found = read(config)
    assert found.keys() == {
        "config.json", "status.json", "versions.json", "state.txt", "jvm.log", "binlogd.log",
        "positions/p.json",
    }  # fmt: skip
    assert json.loads(found["status.json"]) == {"state": "running"}
    assert "structlog" in json.loads(found["versions.json"])["packages"]
    shown = json.loads(found["config.json"])
    assert set(shown["kafka"].values()) <= {"(a text)", "***"}
    assert shown["pipeline"]["p"]["topics"] == ["t"]
    assert found["binlogd.log"] == "an event with *** in it\n"
    assert found["positions/p.json"] == "nothing is recorded\n"
    every = "".join(found.values())
    assert SECRET not in every
    assert PLAIN not in every
    assert (tmp_path / "out.tar.gz").stat().st_mode & 0o777 == 0o600


REGISTRIES = {
    "basic": 'basic_auth = "reader:WORD"',
    "bearer": 'bearer_token = "WORD"',
    "oauth": """[registry.main.oauth]
        token_url = "https://t"
        client_id = "i"
        client_secret = "WORD\"""",
    "key": 'tls_cert = "c.pem"\ntls_key = "k.pem"\ntls_key_password = "WORD"',
}


@pytest.mark.parametrize("kind", REGISTRIES)
def test_the_secrets_of_a_registry_are_in_neither(tmp_path: Path, kind: str) -> None:
    """Written into the file: not in the bundle, its logs, or what ``check-config`` says."""
    config = write_config(tmp_path)
    login = REGISTRIES[kind].replace("WORD", PLAIN)
    text = config.read_text().replace('format = "auto"', 'format = "auto"\nregistry = "main"')
    config.write_text(f'{text}\n[registry.main]\nurl = "https://127.0.0.1:1"\n{login}\n')
    (tmp_path / "b.log").write_text(f"an event with {PLAIN} in it\n")
    assert run(config).exit_code == 0
    found = read(config)
    assert found["binlogd.log"] == "an event with *** in it\n"
    assert PLAIN not in "".join(found.values())
    for more in ([], ["--connect"]):
        checked = CliRunner().invoke(app, ["check-config", "--config", str(config), *more])
        assert PLAIN not in checked.stdout + checked.stderr


def test_what_can_not_be_had_is_named(tmp_path: Path) -> None:
    """No daemon, no logs, a secret that is not readable: the rest is there."""
    config = write_config(tmp_path)
    (tmp_path / "secret").unlink()
    done = run(config)
    assert done.exit_code == 0
    problems = read(config)["problems.txt"].splitlines()
    assert [line.split(":")[0] for line in problems] == ["status.json", "jvm.log", "binlogd.log"]
    assert "no daemon runs on" in problems[0]


def test_nothing_is_replaced(tmp_path: Path) -> None:
    config = write_config(tmp_path)
    (tmp_path / "out.tar.gz").write_text("mine")
    done = run(config)
    assert (done.exit_code, "File exists" in done.stderr) == (2, True)
    assert (tmp_path / "out.tar.gz").read_text() == "mine"


def test_of_a_long_log_the_end_is_taken_from_a_lines_beginning(tmp_path: Path) -> None:
    path = tmp_path / "b.log"
    path.write_bytes(b"x" * bundle.LAST_BYTES + b"\nlast but one\nlast\n\xff\n")
    assert bundle.end_of(path) == "last but one\nlast\n\ufffd\n"
