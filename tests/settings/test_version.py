"""The version is told wherever somebody looks: command line, status, page, metrics, log."""

from __future__ import annotations

import io
import json
from importlib.metadata import version
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from rich.console import Console
from typer.testing import CliRunner

from daemon.admin.page.document import page
from daemon.admin.page.history import History
from daemon.admin.page.targets import View
from daemon.admin.status.metrics import StatusCollector
from daemon.admin.status.status_table import print_status
from daemon.cli.__main__ import app
from settings.version import VERSION
from tests.daemon.admin.page.documents import status

CONFIG = """
[daemon]
state_dir = "state"
[log]
format = "json"
file = "log.jsonl"
[kafka]
"bootstrap.servers" = "127.0.0.1:1"
[sink.copy]
kind = "sqlite"
path = "copy.db"
[pipeline.p]
topics = ["t"]
format = "canal-json"
target = "copy.{database}.{table}"
"""


def test_the_command_line_prints_it() -> None:
    """And does nothing else."""
    result = CliRunner().invoke(app, ["--version"])
    assert (result.exit_code, result.output) == (0, f"binlogd {version('binlogd')}\n")


def test_status_page_and_metrics_have_it() -> None:
    """The document of the status, what people read of it, and Prometheus."""
    shown, out = status([]), io.StringIO()
    assert shown["version"] == VERSION
    print_status(Console(file=out, width=200), shown)
    assert out.getvalue().startswith(f"binlogd {VERSION} running")
    assert f"binlogd {VERSION}, process 4711" in page(shown, History(), View())
    registry = CollectorRegistry()
    registry.register(StatusCollector(lambda: shown))
    line = f'binlogd_build_info{{version="{VERSION}"}} 1.0'
    assert line in generate_latest(registry).decode().splitlines()


def test_the_first_line_of_the_log_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a start ends with: here a state directory that can't be made."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "state").write_text("no folder")
    (tmp_path / "config.toml").write_text(CONFIG)
    result = CliRunner().invoke(app, ["run"])
    assert result.exit_code == 2, result.output
    first = json.loads((tmp_path / "log.jsonl").read_text().splitlines()[0])
    assert (first["event"], first["version"]) == ("binlogd", VERSION)
