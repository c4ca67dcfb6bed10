"""The state directory's measure and bound."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from actors.contract.effects import Spill
from actors.contract.ports import NotKept
from actors.contract.raw_messages import SpillRecord
from changes.formats import make_format
from changes.model.model import FormatOptions, Mode, TargetName
from changes.routes.routing import Route, Router
from daemon.state.dead_letters.files import FileLetters
from daemon.state.room import StateRoom, part_of
from daemon.state.spills.file import SpillFolder
from daemon.state.spills.spills import PipelineSpills
from offsets.position import TopicPartition
from tests.daemon.state.dead_letters.letters import dead, maker

KIB = 1024
T = TargetName("lake", "db", "t")
REFUSED = r"state_dir has come to its bound of [\d,]+ bytes \(state_max_bytes\)"


def put(path: Path, size: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(os.urandom(size))


def record(offset: int, size: int = 40 * KIB) -> SpillRecord:
    return SpillRecord(TopicPartition("t", 0), offset, False, os.urandom(size))


def spills_of(folder: Path, room: StateRoom) -> PipelineSpills:
    router = Router([Route(("*",), (), "lake.{database}.{table}", Mode.UPSERT, None)])
    format_ = make_format("canal-json", FormatOptions())
    return PipelineSpills(SpillFolder(folder, "p", room), None, format_, router)  # type: ignore[arg-type]


def parts(room: StateRoom) -> dict[str, int]:
    figures = room.figures()
    assert figures is not None
    return figures["parts"]


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("p.spill", "spills"), ("p.dead-letters.jsonl", "dead_letters"),
        ("p.dead-letters.000001.jsonl", "dead_letters"),
        ("p.dead-letters.replayed.jsonl", "dead_letters"), ("jvm.log", "logs"),
        ("jvm.log.2", "logs"), ("jvm-crash-7.log", "logs"), ("broker", "broker"),
        ("p.offsets.json", "other"), ("id", "other"), ("jobs", "jobs"),
    ],
)  # fmt: skip
def test_each_file_is_of_a_part(name: str, part: str) -> None:
    assert part_of(name) == part


def test_all_that_is_below_is_measured_and_no_link_followed(tmp_path: Path) -> None:
    state, elsewhere = tmp_path / "state", tmp_path / "elsewhere"
    put(state / "broker" / "logs" / "t-0" / "0.log", 64 * KIB)
    put(state / "p.spill" / "a.spill", 8 * KIB)
    put(elsewhere / "large", 64 * KIB)
    (state / "staging").symlink_to(elsewhere)
    with (state / "broker" / "0.index").open("wb") as sparse:
        sparse.truncate(10 << 20)
    room = StateRoom(state)
    room.measure()
    figures = room.figures()
    assert figures is not None
    assert figures["parts"] == {"broker": 64 * KIB, "spills": 8 * KIB}
    assert not figures["bounded"]


def test_without_a_bound_the_limit_is_the_disk(tmp_path: Path) -> None:
    """So is a bound that the disk has no room for."""
    for most in (None, 1 << 60):
        room = StateRoom(tmp_path, most)
        room.measure()
        figures = room.figures()
        assert figures is not None
        assert (figures["limit_bytes"] < 1 << 60, figures["bounded"]) == (True, False)
        room.require()


def test_a_spill_is_refused_at_the_bound_and_taken_once_there_is_room(tmp_path: Path) -> None:
    """Whoever fills it: another file, or the spill itself, without a new measurement."""
    room = StateRoom(tmp_path, 64 * KIB)
    spills = spills_of(tmp_path, room)
    room.measure()
    spills.append(Spill(T, "why", (), (record(1),)))
    spills.append(Spill(T, "why", (), (record(2),)))
    with pytest.raises(NotKept, match=f"the spill of lake.db.t: {REFUSED}"):
        spills.append(Spill(T, "why", (), (record(3),)))
    assert parts(room)["spills"] > 80 * KIB
    spills.end(T)
    spills.append(Spill(T, "why", (), (record(3),)))
    room.measure()
    assert 40 * KIB < parts(room)["spills"] < 64 * KIB


def test_nothing_is_refused_by_an_old_figure(tmp_path: Path) -> None:
    """Who has made room need not wait for the next measurement; a little while, so that many
    targets that retry do not read the directory all the time."""
    put(tmp_path / "core", 96 * KIB)
    room, patient = (StateRoom(tmp_path, 64 * KIB, again_s) for again_s in (0, 3600))
    for each in (room, patient):
        each.measure()
    with pytest.raises(OSError, match=REFUSED):
        room.require()
    (tmp_path / "core").unlink()
    room.require()
    assert parts(room) == {}
    with pytest.raises(OSError, match=REFUSED):
        patient.require()


def test_a_file_of_two_names_is_counted_once_and_any_depth_is_looked_at(tmp_path: Path) -> None:
    """Deeper than Python's calls may go."""
    put(tmp_path / "a.log", 64 * KIB)
    os.link(tmp_path / "a.log", tmp_path / "b.log")
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(1200):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    room = StateRoom(tmp_path)
    try:
        room.measure()
    finally:
        subprocess.run(["rm", "-r", tmp_path / "d"], check=True)  # Python's own is not deep enough
    assert parts(room) == {"other": 64 * KIB}


MOUNTED = """
mount -t tmpfs none "$1/broker" || exit 77
head -c 65536 /dev/zero > "$1/broker/0.log"
exec "$2" -c '
import sys
from pathlib import Path
from daemon.state.room import StateRoom
room = StateRoom(Path(sys.argv[1]))
room.measure()
print(room.figures()["parts"])' "$1"
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
def test_what_is_mounted_in_it_is_on_another_disk(tmp_path: Path) -> None:
    """It takes no room of this one, whose room the figures are about."""
    (tmp_path / "broker").mkdir()
    put(tmp_path / "id", 4 * KIB)
    command = ["unshare", "--mount", "sh", "-c", MOUNTED, "sh", str(tmp_path), sys.executable]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 77 or "unshare failed" in done.stderr:
        pytest.skip(f"nothing can be mounted here: {done.stderr.strip()}")
    assert done.stdout == "{'other': 4096}\n", done.stderr


def test_a_dead_letter_is_refused_at_the_bound(tmp_path: Path) -> None:
    """Its record stays open, and its pipeline waits, then stops."""
    room = StateRoom(tmp_path, 4 * KIB)
    letters = FileLetters(tmp_path, "p", maker(), room=room)
    offset = 0
    while not letters.path.exists() or letters.path.stat().st_size < 4 * KIB:
        letters.keep(dead(offset))
        offset += 1
    with pytest.raises(NotKept, match=REFUSED):
        letters.keep(dead(offset))


ANOTHER_USER = """
import os, sys
from pathlib import Path
from daemon.state.room import StateRoom

room = StateRoom(Path(sys.argv[1]))
os.seteuid(65534)
room.measure()
print(room.figures()["parts"])
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_a_folder_that_it_may_not_read_is_not_its_own() -> None:
    """The state directory may be a file system's root, which has a ``lost+found`` of root's."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "lost+found").mkdir(0o700)
        (folder / "p.offsets.json").write_bytes(b"x" * 5000)
        command = [sys.executable, "-c", ANOTHER_USER, name]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "{'other': 8192}\n"
