"""The broker's folder: a port and a secret made once, read by everybody, refused by name."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from actors.runtime.programs import HOST
from collector.broker import home as files
from collector.broker.home import BrokerHome, BrokerUnusable
from daemon.config.file import ConfigError, load

FILE = """
{kafka}
[broker]
embedded = true
{broker}
[daemon]
state_dir = "state"
[sink.copy]
kind = "sqlite"
path = "copy.db"
[pipeline.p]
topics = ["shop", "^shop_.*"]
format = "canal-json"
{pipeline}
[[pipeline.p.route]]
target = "copy.{{database}}.{{table}}"
"""


def configured(folder: Path, kafka: str = "", broker: str = "", pipeline: str = "") -> Path:
    path = folder / "config.toml"
    path.write_text(FILE.format(kafka=kafka, broker=broker, pipeline=pipeline))
    return path


def test_port_and_secret_are_made_once_for_the_owner_alone(tmp_path: Path) -> None:
    """The folder is closed, the files are; a second start finds the same."""
    home = BrokerHome(tmp_path / "state", 0)
    assert home.client_settings()["bootstrap.servers"] == f"{HOST}:1", "nobody listens there"
    home.make()
    first = home.client_settings()
    home.make()
    assert home.client_settings() == first
    assert home.folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in home.folder.iterdir()} == {0o600}
    assert len(str(first["sasl.password"])) == 64


def test_the_port_is_none_that_the_kernel_gives_to_connections(tmp_path: Path) -> None:
    """A client that looks for the broker while it is down could be connected to itself."""
    home = BrokerHome(tmp_path, 0)
    home.make()
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert 10_000 <= home.port() < lowest


def test_a_port_that_another_has_taken_is_left_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At a start another is chosen; one that the configuration names is never."""
    monkeypatch.setattr(files, "_FREE_WITHIN_S", 0.3)
    home = BrokerHome(tmp_path, 0)
    home.make()
    with socket.socket() as other:
        other.bind((HOST, home.port()))
        other.listen()
        home.make()
        assert home.port() != other.getsockname()[1]
        named = BrokerHome(tmp_path, other.getsockname()[1])
        named.make()
        assert named.port() == other.getsockname()[1]


@pytest.mark.parametrize(
    ("file", "text", "mode", "said"),
    [
        ("secret", "a" * 64, 0o640, r"is open to others, .*: `chmod 600 .*secret`"),
        ("secret", "a" * 64, 0o602, "is open to others"),
        ("secret", "", 0o600, "holds no secret of ours: bring it back from a backup"),
        ("secret", 'x";\nuser_eve="1' * 9, 0o600, "holds no secret of ours"),
        ("port", "99999", 0o600, "holds no port: remove it, and another is chosen"),
        ("port", "nine", 0o600, "holds no port"),
    ],
)
def test_files_that_are_not_ours_are_refused_by_name(
    tmp_path: Path, file: str, text: str, mode: int, said: str
) -> None:
    """With the way out, by commands, too."""
    home = BrokerHome(tmp_path / "state", 0)
    home.make()
    path = home.folder / file
    path.write_text(text)
    path.chmod(mode)
    with pytest.raises(BrokerUnusable, match=said):
        home.client_settings()
    with pytest.raises(ConfigError, match=said):
        load(configured(tmp_path))
    assert load(configured(tmp_path), lenient=True).kafka["bootstrap.servers"] == f"{HOST}:1"


def test_a_secret_that_is_lost_is_not_made_again_over_data(tmp_path: Path) -> None:
    """The new one would open nothing: the log knows the old one."""
    home = BrokerHome(tmp_path, 0)
    home.make()
    home.logs.mkdir()
    (home.folder / "secret").unlink()
    with pytest.raises(BrokerUnusable, match=r"secret is missing.*or remove that folder"):
        home.make()
    home.logs.rmdir()
    home.make()


def test_the_configuration_has_what_clients_need(tmp_path: Path) -> None:
    """Nothing is written by hand; the secret is shown nowhere, and reading makes no file."""
    path = configured(tmp_path, "[kafka]\n'fetch.wait.max.ms' = 50")
    load(path)
    assert not (tmp_path / "state").exists()
    home = BrokerHome(tmp_path / "state", 0)
    home.make()
    config = load(path)
    assert config.kafka_of("p") == {"fetch.wait.max.ms": 50, **home.client_settings()}
    secret = str(home.client_settings()["sasl.password"])
    assert secret not in config.redactor.text(f"a line with {secret}")
    assert config.embedded_topics() == {"shop"}


@pytest.mark.parametrize(
    ("kafka", "pipeline", "at"),
    [
        ("[kafka]\n'bootstrap.servers' = 'b:1'", "", "kafka.bootstrap.servers"),
        ("[kafka]\n'sasl.password' = 'x'", "", "kafka.sasl.password"),
        ("", "kafka = {'security.protocol' = 'SSL'}", "pipeline.p.kafka.security.protocol"),
    ],
)
def test_another_kafka_beside_it_is_refused_by_name(
    tmp_path: Path, kafka: str, pipeline: str, at: str
) -> None:
    """The secret would be sent there, or the settings of there would be used here."""
    with pytest.raises(ConfigError, match=rf"{at}: the embedded broker .* set embedded = false"):
        load(configured(tmp_path, kafka, pipeline=pipeline))
