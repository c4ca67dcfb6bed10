"""The last release's wheel and today's binlogd take turns on one state directory, amid the flow.

The release is the commit that the file ``last-release`` names; its wheel is built without a
network, with the packages of this environment.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from daemon.state import layout
from demo.broker import DevBroker
from tests.integration.test_process import CHECKOUT, Follower, ended
from tests.needs import missing, tool
from tests.upgrade.history import World, insert

PINNED = Path(__file__).with_name("last-release")
SOME = 2_000

pytestmark = [pytest.mark.long, pytest.mark.integration, pytest.mark.timeout(600)]


class Release:
    """A wheel of the pinned commit, unpacked beside this environment's packages."""

    def __init__(self, folder: Path) -> None:
        """Build and unpack it."""
        self.source, self.packages = folder / "source", folder / "packages"
        self._take()
        made = folder / "made"
        pages = self.source / "build" / "pages"
        self._run(sys.executable, "setup/man_pages.py", str(pages))
        pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
        alone = ("--no-index", "--no-deps")
        self._run(*pip, "wheel", *alone, "--no-build-isolation", "-w", str(made), ".")
        (wheel,) = made.glob("binlogd-*.whl")
        self._run(*pip, "install", *alone, "--target", str(self.packages), str(wheel))

    def _take(self) -> None:
        """The commit's files. Skips the test in a shallow clone that lacks it; in a whole one the
        pin is wrong."""
        git, commit = tool("git"), pinned()
        known = [git, "cat-file", "-e", f"{commit}^{{commit}}"]
        if subprocess.run(known, cwd=CHECKOUT, stderr=subprocess.DEVNULL, check=False).returncode:
            asked = [git, "rev-parse", "--is-shallow-repository"]
            shallow = subprocess.run(
                asked, cwd=CHECKOUT, capture_output=True, text=True, check=True
            )
            assert shallow.stdout.strip() == "true", (
                f"no commit {commit}: tests/upgrade/last-release"
            )
            missing("history", f"this clone is shallow, without {commit}: `git fetch --unshallow`")
        self.source.mkdir(parents=True)
        archive = self.source.with_suffix(".tar")
        made = [git, "archive", "-o", str(archive), commit]
        subprocess.run(made, cwd=CHECKOUT, check=True, timeout=60)
        self._run("tar", "-xf", str(archive))

    def _run(self, *command: str) -> None:
        subprocess.run(command, cwd=self.source, check=True, timeout=300)

    @property
    def layout(self) -> str:
        """The version of its state directory's files."""
        text = (self.source / "daemon" / "state" / "layout.py").read_text()
        found = re.search(r"^VERSION = (\d+)$", text, re.MULTILINE)
        assert found is not None
        return found[1]

    def start(self, *words: str) -> subprocess.Popen[str]:
        """A command of the wheel, as a process."""
        code = "import binlogd; binlogd.main()"
        return subprocess.Popen(
            [sys.executable, "-c", code, *words], cwd=self.packages.parent, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": str(self.packages), "PYTHONSAFEPATH": "1"},
        )  # fmt: skip


def pinned() -> str:
    """The commit that the file names."""
    (commit,) = (line for line in PINNED.read_text().split("\n") if line and line[0] != "#")
    return commit


class TwoVersions(World):
    """A state directory that either version runs on."""

    release: Release
    old = False
    """Whether the release runs, not the checkout."""

    def start(self, *words: str) -> subprocess.Popen[str]:
        """A command of the version whose turn it is."""
        if self.old:
            return self.release.start(*words, "--config", str(self.config))
        return super().start(*words)

    @contextmanager
    def turn(self, *, old: bool) -> Iterator[tuple[subprocess.Popen[str], Follower]]:
        """That version runs."""
        self.old = old
        with self.running() as both:
            yield both


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Release:
    return Release(tmp_path_factory.mktemp("release"))


@pytest.fixture
def world(release: Release, tmp_path: Path) -> Iterator[TwoVersions]:
    with DevBroker(tmp_path / "broker") as broker:
        made = TwoVersions(tmp_path, broker)
        made.configure("")
        made.release = release
        yield made


def test_the_release_is_no_part_of_the_checkout(release: Release) -> None:
    """Else the other tests say nothing."""
    where = subprocess.run(
        [sys.executable, "-c", "import binlogd; binlogd.use_code(); import daemon.cli; "
         "print(binlogd.__file__, daemon.cli.__file__)"],
        env=os.environ | {"PYTHONPATH": str(release.packages), "PYTHONSAFEPATH": "1"},
        capture_output=True, text=True, check=True, cwd=release.packages.parent,
    ).stdout.split()  # fmt: skip
    assert [Path(each).is_relative_to(release.packages) for each in where] == [True, True]


def test_they_take_turns_and_each_change_is_applied_once(world: TwoVersions) -> None:
    """Through kills and stops; with a spill, letters, a pause and a job of the other version's.
    Where today's layout is another one, there is no way back, and only that is tested."""
    with world.turn(old=True) as (process, log):
        world.produce(*insert("u", 0))
        log.wait_for("written")
        world.produce(*insert("t", *range(10)), b"{bad")
        log.wait_for("dead_letter")
        world.produce(*insert("t", *range(10, SOME)))
        log.wait_for("written")
        process.kill()
    world.sql('CREATE UNIQUE INDEX one_name ON "shop.u" (name)')
    with world.turn(old=False) as (process, log):
        world.produce(*insert("u", 1, 2))
        log.wait_for("quarantined")
        world.produce(b"{worse", *insert("u", 3), *insert("t", *range(SOME, 2 * SOME)))
        log.wait_for("written")
        process.kill()
    with world.turn(old=False) as (_, log):
        world.command("tables", "rebuild", "copy.shop.t")
        log.wait_for("rebuild_complete")
        world.command("pause", "copy.shop.t_log", "--reason", "for the other one")
        world.produce(*insert("t", *range(2 * SOME, 3 * SOME)))
        log.wait_for("written")
    back = world.release.layout == str(layout.VERSION)
    with world.turn(old=back) as (process, log):
        assert "rebuild" in world.command("jobs", "list", "--json")
        world.command("resume", "copy.shop.t_log")
        world.produce(*insert("u", 4), *insert("t", *range(3 * SOME, 4 * SOME)))
        log.wait_for("written", times=2)
        process.kill()
    world.sql("DROP INDEX one_name")
    with world.turn(old=back) as (_, log):
        world.command("tables", "retry", "copy.shop.u")
        log.wait_for("released")
    with world.turn(old=False) as (_, log):
        world.produce(*insert("t", 4 * SOME), *insert("u", 5))
        log.wait_for("written", times=3)
    whole(world, 4 * SOME + 1)


def whole(world: World, count: int) -> None:
    """Each change is there, and once."""
    assert ids(world, "t") == [*range(count)]
    assert ids(world, "u") == [*range(6)]
    offsets = [row[0] for row in world.sql('SELECT _offset FROM "shop.t_log"')]
    assert len(offsets) == len(set(offsets)) == count
    letters = json.loads(world.command("dead-letters", "list", "--json"))
    assert [letter["state"] for letter in letters] == ["open", "open"]


def ids(world: World, table: str) -> list[object]:
    return [row[0] for row in world.sql(f'SELECT id FROM "shop.{table}" ORDER BY id')]


def test_the_release_refuses_a_layout_that_it_does_not_know(world: TwoVersions) -> None:
    """By name, with the way out, and changes nothing."""
    with world.turn(old=False) as (_, log):
        world.produce(*insert("t", 1))
        log.wait_for("written")
    state = world.folder / "state"
    (state / "version").write_text("99\n")
    before = {path: path.read_bytes() for path in state.rglob("*") if path.is_file()}
    world.old = True
    status, said = ended(world.start("run"))
    assert status == 2
    assert "says '99', this binlogd knows " in said
    assert "Start that one again" in said
    assert {path: path.read_bytes() for path in state.rglob("*") if path.is_file()} == before
