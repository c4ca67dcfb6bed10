"""A spill's file: whole records only, and never less than the offset file says."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from actors.contract.raw_messages import SpillRecord
from changes.model.model import TargetName
from daemon.state.spills.file import Spill, SpillError, SpillFolder
from daemon.state.spills.spills import spills_at_start
from offsets.position import TopicPartition
from offsets.snapshot import Snapshot, SpillMark
from offsets.snapshot_text import decode, encode

S0, S1 = TopicPartition("a:b", 0), TopicPartition("binlog", 1)
T = TargetName("lake", "db", "t.x")


def record(offset: int, source: TopicPartition = S0, ddl: bool = False) -> SpillRecord:
    return SpillRecord(source, offset, ddl, b"value %d" % offset)


def spill(folder: Path) -> Spill:
    return SpillFolder(folder, "p").of(T)


RECORDS = [record(3), record(1, S1), record(7, ddl=True)]


def mark_of(made: Spill) -> SpillMark:
    return SpillMark(made.state.bytes, made.state.lanes)


def test_what_was_appended_is_read_back_in_order(tmp_path: Path) -> None:
    """By another process, too; page by page."""
    spill(tmp_path).append(T, "why", RECORDS)
    again = spill(tmp_path)
    found, position = [], 0
    while position < again.state.bytes:
        page, position = again.read(position, 1)
        found += page
    assert found == RECORDS
    assert again.state.lanes == {S0: (3, 7), S1: (1, 1)}


def test_appending_again_what_is_there_changes_nothing(tmp_path: Path) -> None:
    """A retry after a failure half-way, or a restart before the acknowledgement."""
    made = spill(tmp_path)
    made.append(T, "why", RECORDS)
    state = made.append(T, "why", [*RECORDS, record(8)])
    assert state.messages == 4


@pytest.mark.parametrize("cut", range(1, 75, 3))
def test_what_a_crash_cut_short_is_cut_off(tmp_path: Path, cut: int) -> None:
    """Wherever it was cut, the appends before it are whole, and what comes next is readable."""
    made = spill(tmp_path)
    made.append(T, "why", RECORDS)
    before = made.path.stat().st_size
    made.append(T, "why", [record(8), record(9), record(10)])
    assert made.path.stat().st_size - before > 75
    with made.path.open("r+b") as file:
        file.truncate(made.path.stat().st_size - cut)
    again = spill(tmp_path)
    assert (again.state.messages, again.state.lanes[S0]) == (3, (3, 7))
    again.append(T, "why", [record(8), record(11)])
    assert spill(tmp_path).state.lanes[S0] == (3, 11)


def test_half_a_first_append_is_no_spill(tmp_path: Path) -> None:
    """A write that ended late may have brought the target beyond it, and no release would end."""
    made = spill(tmp_path)
    made.append(T, "why", RECORDS, away=True)
    with made.path.open("r+b") as file:
        file.truncate(made.path.stat().st_size - 1)
    assert SpillFolder(tmp_path, "p").found({}) == ()
    again = spill(tmp_path)
    again.append(T, "another reason", [record(9)])
    (found,) = SpillFolder(tmp_path, "p").found({})
    assert (found.reason, found.away, found.state.messages) == ("another reason", False, 1)


def test_values_do_not_outlive_their_spill(tmp_path: Path) -> None:
    """They may be of masked columns: neither a replayed spill leaves any, nor one that a crash cut
    short before anything of it counted."""
    other = TargetName("lake", "db", "other")
    made, cut = spill(tmp_path), SpillFolder(tmp_path, "p").of(other)
    made.append(T, "why", RECORDS)
    cut.append(other, "why", RECORDS)
    with cut.path.open("r+b") as file:
        file.truncate(cut.path.stat().st_size - 1)
    listed = {str(T): mark_of(made)}
    assert [found.target for found in SpillFolder(tmp_path, "p").found(listed)] == [T]
    assert not cut.path.exists()
    made.end()
    left = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert left
    assert not any(b"value" in path.read_bytes() for path in left)


def test_a_listed_spill_is_never_removed_at_a_start(tmp_path: Path) -> None:
    """Even where its beginning is damaged, and an operator starts without it: it may be mended."""
    made = spill(tmp_path)
    made.append(T, "why", RECORDS)
    listed = {str(T): mark_of(made)}
    made.end()
    made.append(T, "why", RECORDS)
    made.path.write_bytes(b"damaged" + made.path.read_bytes()[7:])
    assert SpillFolder(tmp_path, "p").found(listed) == ()
    assert made.path.exists()


def test_a_spill_of_a_version_without_ends_is_read_to_its_last_whole_record(tmp_path: Path) -> None:
    """As 0.1.0 writes it; what is appended to it later is read, too."""
    made = spill(tmp_path)
    made.append(T, "why", RECORDS)
    old = made.path.read_bytes().replace(b'"binlogd_spill": 2', b'"binlogd_spill": 1')
    made.path.write_bytes(old[:-8])
    again = spill(tmp_path)
    assert (again.state.messages, list(again.records())) == (3, RECORDS)
    again.append(T, "why", [record(8)])
    assert [each.offset for each in spill(tmp_path).records()] == [3, 1, 7, 8]


def test_a_spill_of_a_later_version_is_refused(tmp_path: Path) -> None:
    """It may say what this one does not know."""
    made = spill(tmp_path)
    made.append(T, "why", RECORDS)
    later = made.path.read_bytes().replace(b'"binlogd_spill": 2', b'"binlogd_spill": 3')
    made.path.write_bytes(later)
    with pytest.raises(SpillError, match="later version"):
        SpillFolder(tmp_path, "p").found({})


@pytest.mark.parametrize("damaged", [1, 9, 25])
def test_a_spill_with_a_damaged_record_that_was_acknowledged_is_refused(
    tmp_path: Path, damaged: int
) -> None:
    """The offset file says that it holds more: those messages would be lost in silence."""
    made = spill(tmp_path)
    made.append(T, "why", RECORDS)
    made.append(T, "why", [record(9)])
    text = bytearray(made.path.read_bytes())
    text[-damaged] ^= 1
    made.path.write_bytes(text)
    with pytest.raises(SpillError, match=r"should hold a:b:0 through 9 and ends at 7"):
        SpillFolder(tmp_path, "p").found({str(T): mark_of(made)})


def test_a_missing_spill_is_refused(tmp_path: Path) -> None:
    """Its messages count as done and are nowhere else."""
    mark = SpillMark(10, {S0: (3, 7)})
    with pytest.raises(SpillError, match="is missing"):
        SpillFolder(tmp_path, "p").found({str(T): mark})


def test_a_forced_start_goes_on_without_a_missing_spill(tmp_path: Path) -> None:
    """As the refusal says; what else is in quarantine stays there."""
    made = spill(tmp_path)
    made.append(T, "why", RECORDS)
    other = SpillMark(10, {S0: (3, 7)})
    listed = {str(T): mark_of(made), "lake.db.gone": other}
    with pytest.raises(SpillError, match=r"lake\.db\.gone .* is missing"):
        spills_at_start(SpillFolder(tmp_path, "p"), listed, forced=False)
    found, missing = spills_at_start(SpillFolder(tmp_path, "p"), listed, forced=True)
    assert [spill.target for spill in found] == [T]
    assert "the spill of lake.db.gone should hold" in str(missing)


def test_a_spill_that_was_replayed_is_not_missed(tmp_path: Path) -> None:
    """The process may end before the offset file stops listing it."""
    made = spill(tmp_path)
    made.append(T, "why", RECORDS)
    mark = mark_of(made)
    made.end()
    assert SpillFolder(tmp_path, "p").found({str(T): mark}) == ()
    assert SpillFolder(tmp_path, "p").found({}) == ()
    assert not list(tmp_path.rglob("*.done"))


def test_a_second_spill_is_missed_whatever_became_of_the_first(tmp_path: Path) -> None:
    """A target may be in quarantine twice between two starts: the mark of its first spill, which
    was replayed, says nothing about the messages of the second."""
    made = spill(tmp_path)
    made.append(T, "why", [record(3)])
    made.end()
    made.append(T, "why", [record(7)])
    listed = {str(T): mark_of(made)}
    assert len(SpillFolder(tmp_path, "p").found(listed)) == 1
    made.path.unlink()
    with pytest.raises(SpillError, match="should hold a:b:0 through 7 and is missing"):
        SpillFolder(tmp_path, "p").found(listed)


def test_a_spill_is_not_missed_though_another_came_after_it(tmp_path: Path) -> None:
    """The first one, of two lanes, is still listed; the second holds one of them and is replayed
    as well."""
    made = spill(tmp_path)
    made.append(T, "why", RECORDS)
    listed = {str(T): mark_of(made)}
    made.end()
    made.append(T, "why", [record(9)])
    assert len(SpillFolder(tmp_path, "p").found(listed)) == 1
    made.end()
    assert SpillFolder(tmp_path, "p").found(listed) == ()


def test_a_spill_that_is_not_listed_yet_is_found(tmp_path: Path) -> None:
    """A crash came between the spill and the offset file."""
    spill(tmp_path).append(T, "why", RECORDS)
    (found,) = SpillFolder(tmp_path, "p").found({})
    assert (found.target, found.reason, found.first) == (T, "why", RECORDS[0])


def test_a_failed_append_leaves_what_was_there(tmp_path: Path) -> None:
    """What had been taken of it is written over by the next one."""
    made = spill(tmp_path)
    made.append(T, "why", [record(3)])

    def broken() -> object:
        yield record(4)
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space"):
        made.append(T, "why", broken())  # type: ignore[arg-type]
    assert made.append(T, "why", [record(5)]).lanes == {S0: (3, 5)}
    assert [r.offset for r in spill(tmp_path).read(0, 1000)[0]] == [3, 5]


def failing_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder can't be synced, once."""
    real = os.fsync

    def fails(handle: int) -> None:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            monkeypatch.setattr(os, "fsync", real)
            raise OSError("no space left")
        real(handle)

    monkeypatch.setattr(os, "fsync", fails)


def test_a_folder_that_is_not_synced_leaves_the_spill_to_be_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was handed over is not taken for being there already."""
    made = spill(tmp_path)
    failing_once(monkeypatch)
    with pytest.raises(OSError, match="no space"):
        made.append(T, "why", RECORDS)
    assert made.state.messages == 0
    made.append(T, "why", RECORDS)
    for each in (made, spill(tmp_path)):
        assert each.read(0, 1 << 20)[0] == RECORDS


def test_a_spill_that_has_half_ended_ends_when_it_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file has its mark's name by then."""
    made = spill(tmp_path)
    made.append(T, "why", RECORDS)
    listed = {str(T): mark_of(made)}
    failing_once(monkeypatch)
    with pytest.raises(OSError, match="no space"):
        made.end()
    made.end()
    assert SpillFolder(tmp_path, "p").found(listed) == ()


def test_a_replayed_spill_vouches_for_what_an_earlier_one_did(tmp_path: Path) -> None:
    """The offset file may list the earlier one still, which went further."""
    made = spill(tmp_path)
    made.append(T, "why", RECORDS)
    listed = {str(T): mark_of(made)}
    made.end()
    made.append(T, "why", RECORDS[:1])
    made.end()
    assert SpillFolder(tmp_path, "p").found(listed) == ()


def test_a_spill_says_that_its_sink_was_away(tmp_path: Path) -> None:
    """A start releases it by itself."""
    spill(tmp_path).append(T, "why", RECORDS, away=True)
    (found,) = SpillFolder(tmp_path, "p").found({})
    assert found.away


def test_the_offset_file_keeps_what_spills_hold() -> None:
    """And is read by a person's edit, too."""
    mark = SpillMark(10, {S1: (3, 7)})
    for each in (mark, replace(mark, away=True)):
        snapshot = Snapshot("p", "g", spills={str(T): each})
        assert decode(encode(snapshot), edited=True) == snapshot
