"""The alerts: each fires and ends as promtool computes it, and has a page of the runbook."""

from __future__ import annotations

import copy
import re
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry, generate_latest
from typer.testing import CliRunner

from daemon.admin.status.metrics import StatusCollector
from daemon.cli.__main__ import app
from tests.daemon.admin.page.documents import failing, job, quarantined, status, target
from tests.deploy.alert_cases import CASES, document
from tests.integration.test_process import minimal
from tests.needs import tool

CHECKOUT = Path(__file__).parents[2]
RULES_FILE = CHECKOUT / "deploy/prometheus/binlogd.rules.yml"
RULES: list[dict[str, Any]] = yaml.safe_load(RULES_FILE.read_text())["groups"][0]["rules"]
SEVERITY = {rule["alert"]: rule["labels"]["severity"] for rule in RULES}
RUNBOOK = CHECKOUT / "docs/runbook"


def test_each_alert_fires_and_ends(tmp_path: Path) -> None:
    """On series of minutes; annotations are left out, they are read elsewhere."""
    promtool = tool("promtool")
    plain = copy.deepcopy(RULES)
    for rule in plain:
        del rule["annotations"]
    (tmp_path / "rules.yml").write_text(yaml.dump({"groups": [{"name": "g", "rules": plain}]}))
    (tmp_path / "test.yml").write_text(yaml.dump(document(CASES, SEVERITY)))
    done = subprocess.run(
        [promtool, "test", "rules", "test.yml"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_alert_is_without_a_case_that_fires_and_one_that_does_not() -> None:
    fire = {case.alert for case in CASES if case.fires}
    quiet = {case.alert for case in CASES if case.quiet}
    assert fire == quiet == SEVERITY.keys()


def test_promtool_takes_the_rules_as_they_are() -> None:
    done = subprocess.run(
        [tool("promtool"), "check", "rules", str(RULES_FILE)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_each_alert_has_a_severity_and_a_page(rule: dict[str, Any]) -> None:
    """The page names the alert, and says what to do."""
    assert rule["labels"]["severity"] in ("page", "ticket")
    page = CHECKOUT / rule["annotations"]["runbook_url"]
    text = page.read_text()
    assert f"`{rule['alert']}` ({rule['labels']['severity']})" in text
    headings = re.findall("^## (.*)$", text, re.M)
    assert headings == ["What it means", "Look", "Do", "It is over when"]
    assert f"`{rule['alert']}`" in (RUNBOOK / "README.md").read_text()


def test_the_command_prints_the_rules_with_the_address_of_the_docs(tmp_path: Path) -> None:
    """Each link is absolute; the rest is the file's. Without an address it is refused by name."""
    config = minimal(tmp_path)
    run = partial(CliRunner().invoke, app, ["config", "alerts", "--config", str(config)])
    done = run()
    assert done.exit_code == 2
    assert "metrics.docs is empty" in done.stderr
    config.write_text(config.read_text() + '[metrics]\ndocs = "https://wiki.example/b #1/"\n')
    done = run()
    assert (done.exit_code, done.stderr) == (0, "")
    rules = yaml.safe_load(done.stdout)["groups"][0]["rules"]
    links = [rule["annotations"].pop("runbook_url") for rule in rules]
    plain = copy.deepcopy(RULES)
    pages = [rule["annotations"].pop("runbook_url").removeprefix("docs/") for rule in plain]
    assert links == [f"https://wiki.example/b #1/{page}" for page in pages]
    assert rules == plain


def test_no_page_is_left_of_an_alert_that_is_gone() -> None:
    named = {Path(rule["annotations"]["runbook_url"]).name for rule in RULES}
    of_no_alert = {"README.md", "host-lost.md"}  # nothing is left there that could raise one
    assert {page.name for page in RUNBOOK.glob("*.md")} - of_no_alert == named


def known_metrics() -> Iterator[str]:
    """What a daemon shows, whatever its state."""
    found = status([failing("lake.s.t", "x"), quarantined("lake.s.u", "y"), target("lake.s.v", 5)],
                   jobs=[job()], differ={"lake.s.w": "z"})  # fmt: skip
    state = {"parts": {"spills": 1}, "limit_bytes": 2, "bounded": True}
    found = {**found, "state_dir": state}  # type: ignore[assignment]
    registry = CollectorRegistry()
    registry.register(StatusCollector(lambda: found))
    for line in generate_latest(registry).decode().splitlines():
        if line.startswith("# HELP"):
            yield line.split()[2]


def test_each_metric_of_an_alert_is_one_that_the_daemon_shows() -> None:
    """A name that is misspelt would never fire."""
    known = set(known_metrics())
    used = {m for rule in RULES for m in re.findall(r"binlogd_\w+", rule["expr"])}
    assert used - known == set()
