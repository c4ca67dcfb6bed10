"""A real Prometheus that scrapes a daemon, with the alerts at a sixtieth of their time."""

from __future__ import annotations

import json
import re
import subprocess
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from actors.runtime.programs import HOST, free_port
from tests.needs import tool

MINUTE_S = 1
"""What a minute of the rules takes here. Scrapes are a second apart, windows are 15 of them."""

_STEP_S = 0.5
"""Between two questions to Prometheus."""


def hurried(rules: str) -> str:
    """The rules with windows, waits and bounds of lag in seconds instead of minutes."""

    def seconds(found: re.Match[str]) -> str:
        number, unit = int(found[1]), found[2]
        return f"{number * {'m': 1, 'h': 60}[unit] * MINUTE_S}s"

    text = re.sub(r"(?<=[\[ ])(\d+)([mh])(?=\]|\n)", seconds, rules)
    return text.replace("> 600 ", "> 10 ").replace("> 120", "> 2")


class Prometheus:
    """Runs from ``start`` to ``stop``; scrapes ``127.0.0.1:port`` each second."""

    def __init__(self, folder: Path, rules: Path, port: int) -> None:
        self._folder = folder
        self._port = free_port()
        (folder / "rules.yml").write_text(hurried(rules.read_text()))
        target = {"job_name": "binlogd", "static_configs": [{"targets": [f"{HOST}:{port}"]}]}
        settings = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": ["rules.yml"],
            "scrape_configs": [target],
        }
        (folder / "prometheus.yml").write_text(yaml.dump(settings))
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it; its first answer is awaited by ``until``."""
        self._process = subprocess.Popen(
            [
                tool("prometheus"),
                f"--config.file={self._folder}/prometheus.yml",
                f"--storage.tsdb.path={self._folder}/data",
                f"--web.listen-address={HOST}:{self._port}",
            ],
            stdout=subprocess.DEVNULL,
            stderr=(self._folder / "prometheus.log").open("wb"),
        )

    def stop(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def get(self, path: str, **query: str) -> Any:
        """The ``data`` of an answer."""
        address = f"http://{HOST}:{self._port}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(address, timeout=10) as reply:
            return json.load(reply)["data"]

    def series(self, expression: str) -> list[Any]:
        """What an expression gives now."""
        found: list[Any] = self.get("query", query=expression)["result"]
        return found

    def firing(self) -> set[str]:
        """The alerts that fire now, by name."""
        alerts = self.get("alerts")["alerts"]
        return {a["labels"]["alertname"] for a in alerts if a["state"] == "firing"}

    def until(self, met: Callable[[], bool], within_s: float = 120.0) -> None:
        """Ask again until it is so. Fails with what fires then."""
        end = time.monotonic() + within_s
        while True:
            try:
                if met():
                    return
            except OSError:  # it is starting
                pass
            assert time.monotonic() < end, self.firing()
            threading.Event().wait(_STEP_S)

    def fire(self, *alerts: str, within_s: float = 120.0) -> None:
        """Wait until all of these have fired at the same time."""
        self.until(lambda: set(alerts) <= self.firing(), within_s)

    def end(self, *alerts: str, within_s: float = 120.0) -> None:
        """Wait until none of these fires."""
        self.until(lambda: not set(alerts) & self.firing(), within_s)
