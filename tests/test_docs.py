"""What the documentation names is there: files, decisions, pages that it leads to."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from changes.formats import FORMATS
from setup.docs_hook import on_page_markdown
from sparkwriter.sections import KINDS

CHECKOUT = Path(__file__).parents[1]
PAGES = sorted(
    [
        path
        for folder in ("", "deploy/", "docs/", "docs/decisions/", "docs/sinks/", "docs/runbook/")
        for path in CHECKOUT.glob(f"{folder}*.md")
    ]
)
ROOMS = "actors|bench|changes|daemon|demo|deploy|docs|jars|offsets|setup|sparkwriter|systemd|tests"
NAMED = re.compile(rf"`((?:{ROOMS})/[\w./-]*)`")
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(CHECKOUT)))
def test_what_a_page_names_is_there(page: Path) -> None:
    """A path in backticks from the project's folder, a link from the page's own."""
    text = page.read_text()
    missing = {
        name
        for name in NAMED.findall(text)
        if not any((CHECKOUT / root / name).exists() for root in (".", "tests"))
    }
    missing |= {link for link in LINK.findall(text) if not (page.parent / link).exists()}
    assert not missing


def test_the_index_has_every_decision() -> None:
    """By its file and title."""
    index = (CHECKOUT / "docs/decisions/README.md").read_text()
    for page in CHECKOUT.glob("docs/decisions/0*.md"):
        number, title = page.read_text().split("\n", 1)[0].removeprefix("# ").split(". ", 1)
        assert f"| {number} | [{title}]({page.name}) |" in index


def test_each_format_has_its_place() -> None:
    """In both tables of the formats, and among the values of the configuration's key."""
    tables = (CHECKOUT / "docs/formats.md").read_text().splitlines()
    keys = (CHECKOUT / "docs/configuration.md").read_text().splitlines()
    (key,) = (line for line in keys if line.startswith("| `format` |"))
    for name in FORMATS:
        assert sum(line.startswith(f"| `{name}` |") for line in tables) == 2
        assert f"`{name}`" in key


def test_each_kind_of_sink_has_its_chapter() -> None:
    keys = (CHECKOUT / "docs/configuration.md").read_text()
    for kind in KINDS:
        assert f'### `kind = "{kind}"`' in keys


def test_each_key_has_an_anchor() -> None:
    """A link can lead to the row of a key, and to one row alone."""
    rows, of_keys = [], False
    for line in (CHECKOUT / "docs/configuration.md").read_text().splitlines():
        of_keys = line.startswith(("| key", "| option |")) or (of_keys and line.startswith("|"))
        rows += [line] if of_keys and line.startswith("| `") else []
    anchors = [re.findall(r'<a id="([^"]+)"></a>', row) for row in rows]
    assert len(rows) > 150
    assert [row for row, found in zip(rows, anchors, strict=True) if not found] == []
    every = [anchor for found in anchors for anchor in found]
    assert len(every) == len(set(every))


def test_costs_beside_others_are_computed_from_measured_seconds() -> None:
    """Each figure is one of the performance page's, and the others follow from it."""
    page = (CHECKOUT / "docs/beside-others.md").read_text()
    measured = (CHECKOUT / "docs/performance.md").read_text()
    price = float(re.search(r"`p = ([\d.]+)`", page)[1])  # type: ignore[index]
    rows = re.findall(r"^\|[^|]*\|[^|]*\| ([\d.,]+) \| ([\d.,]+) \| ([\d.]+) \|$", page, re.M)
    assert len(rows) == 11
    for seconds, hours, cost in rows:
        exact = float(seconds.replace(",", "")) * 1000 / 3600
        assert re.search(rf"[ (]{re.escape(seconds)}[ ,)]", measured)
        assert (hours, cost) == (f"{exact:,.1f}", f"{exact * price:.2f}")


def test_each_symptom_has_its_place_in_the_menu() -> None:
    """Whoever is woken finds the page without a search; the parts come in the reader's order."""
    menu = yaml.safe_load((CHECKOUT / "mkdocs.yml").read_text())["nav"]
    parts = [
        "Start", "Configure", "Operate", "Collector", "Formats", "Sinks", "Performance",
        "Reliability",
    ]  # fmt: skip
    assert [next(iter(part)) for part in menu] == [*parts, "Design"]
    for page in CHECKOUT.glob("docs/runbook/*.md"):
        assert f"runbook/{page.name}" in str(menu)


def test_a_picture_that_is_not_there_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """Markdown has no words for a picture with two themes, so mkdocs does not look at it."""
    text = '<img src="figures/way.svg"> <img src="figures/nowhere.svg">'
    with caplog.at_level("WARNING", "mkdocs"):
        on_page_markdown(text, SimpleNamespace(file=SimpleNamespace(src_uri="load.md")))
    assert [line for line in caplog.messages if "way.svg" in line] == []
    assert [line for line in caplog.messages if "figures/nowhere.svg is not there" in line]


def test_the_site_is_built_without_a_broken_link(tmp_path: Path) -> None:
    """``make docs``: anchors, too, and pages that no menu leads to."""
    mkdocs = [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(
        mkdocs, cwd=CHECKOUT, capture_output=True, text=True,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip
    said = [line for line in done.stderr.splitlines() if not line.startswith("INFO")]
    assert done.returncode == 0, "\n".join(said)
    assert (tmp_path / "site/runbook/down.html").is_file()
