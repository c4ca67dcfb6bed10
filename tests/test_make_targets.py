"""Every target of make that the README names is run by something that CI runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CI = ".ci/run"
HERE = "tests/test_make_targets.py"
RUN: Mapping[str, str] = {
    "setup": CI, "lint": CI, "test": CI, "test-long": CI, "quick": "Makefile",
    "demo": "tests/demo/test_demo.py", "live": "tests/live/test_ways.py",
    "conformance": HERE, "bench": HERE, "bench-compare": HERE,
    "compare": "tests/bench/compare/test_run.py",
}  # fmt: skip
"""By target, what runs it. ``quick`` is a part of ``test``, whose tests those are."""


def recipe(target: str) -> str:
    """The lines of a target."""
    found = re.search(
        rf"^{target}:(?!=).*(?:\n\t.*)*", (ROOT / "Makefile").read_text(), re.MULTILINE
    )
    assert found, target
    return found[0]


def test_every_target_that_the_readme_names_is_run() -> None:
    """Or it may not work, and nobody sees it for weeks."""
    text = (ROOT / "README.md").read_text()
    assert set(re.findall(r"\bmake ([a-z][a-z-]*)\b", text)) == RUN.keys()


@pytest.mark.parametrize(("target", "by"), RUN.items())
def test_what_runs_a_target_names_what_its_recipe_runs(target: str, by: str) -> None:
    """By its name, or by the module that it starts."""
    text = (ROOT / by).read_text()
    if by == CI:
        assert re.search(rf"\b{target}\b", text) or f"make {target}" in text
        return
    modules = re.findall(r"python -m ([a-z.]+)", recipe(target))
    assert not modules or any(f'"{module}' in text for module in modules)


def run(words: Sequence[str], timeout_s: float = 280) -> str:
    """A recipe's program; gives what it said.

    Without what pytest-xdist tells its workers: pytest-benchmark measures nothing beneath one.
    """
    env = {name: value for name, value in os.environ.items() if "PYTEST" not in name}
    done = subprocess.run(
        [sys.executable, "-m", *words], cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True,
        text=True, check=False, timeout=timeout_s, env=env,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.long
def test_benchmarks_are_measured_and_compared_with_saved_ones(tmp_path: Path) -> None:
    """As ``bench`` and ``bench-compare`` do it, with one file of benchmarks."""
    saved = ("pytest", "bench/test_offset_stores.py", "--benchmark-storage", f"file://{tmp_path}")
    run((*saved, "--benchmark-json", str(tmp_path / "bench.json"), "--benchmark-autosave"))
    assert "(0001_" in run((*saved, "--benchmark-compare"))


@pytest.mark.long
def test_samples_are_counted_or_missing() -> None:
    """As ``conformance`` does it; 3: the samples are not there."""
    words = [sys.executable, "-m", "tests.conformance"]
    done = subprocess.run(
        words, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 3), done.stdout + done.stderr
    assert "Traceback" not in done.stderr
