"""The steps of a load as changes of the snapshot, and its text."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

import msgspec
import pytest

from offsets.position import TopicPartition
from offsets.rebuild import Load, LoadHindered, Rebuild, SwapRefused
from offsets.rebuild_steps import (
    begun_load,
    broken,
    cancelled,
    ended,
    is_complete,
    loaded,
    refused,
    tidied,
)
from offsets.snapshot import PartitionState, Snapshot, SpillMark, TargetMark
from offsets.snapshot_text import NewerSnapshot, decode, encode

ONE, TWO = (TopicPartition("shop", n) for n in range(2))
T, NEW, NEXT = "lake.s.t", "lake.s.t__rebuild_1", "lake.s.t__rebuild_2"
LOAD = Load("load-1", {ONE: 100})


def recorded(frontier: int = 100) -> Snapshot:
    return Snapshot(
        "p",
        "g",
        partitions={source: PartitionState(frontier, frontier) for source in (ONE, TWO)},
        targets={T: TargetMark("v", {ONE: 90})},
    )


def at(snapshot: Snapshot, frontier: int) -> Snapshot:
    states = {source: PartitionState(frontier) for source in (ONE, TWO)}
    return replace(snapshot, partitions=states)


def begun() -> Snapshot:
    return begun_load(recorded(), T, NEW, LOAD)


def test_nothing_is_read_again_for_it() -> None:
    """The stream's part begins where the pipeline stands."""
    assert begun().partitions == recorded().partitions
    assert begun().rebuilds[T] == Rebuild(NEW, {ONE: 99}, load=LOAD, begun_at=LOAD.since)


def test_it_is_not_complete_while_it_is_filled() -> None:
    """However far the stream is."""
    assert not is_complete(at(begun(), 1000), T)


def test_it_is_complete_when_the_stream_has_passed_what_the_reads_saw() -> None:
    """And nothing of it waits in a spill."""
    done = loaded(begun(), T, {ONE: 150})
    assert not is_complete(at(done, 149), T)
    assert is_complete(at(done, 150), T)
    waits = replace(at(done, 150), spills={NEW: SpillMark(1, {ONE: (120, 130)})})
    assert not is_complete(waits, T)


def test_a_broken_one_is_never_complete() -> None:
    """The next attempt is."""
    done = loaded(begun(), T, {ONE: 150})
    rebuild = broken(done.rebuilds[T], LoadHindered("a statement", {ONE: 120}))
    assert not is_complete(at(replace(done, rebuilds={T: rebuild}), 1000), T)


def test_what_breaks_it_later_moves_the_place_on_and_never_back() -> None:
    """What was given up stays so."""
    first = broken(begun().rebuilds[T], LoadHindered("a", {ONE: 120}))
    second = broken(first, LoadHindered("b", {ONE: 110, TWO: 5}))
    assert second.load is not None
    assert second.load.broken == LoadHindered("b", {ONE: 120, TWO: 5})
    given_up = broken(second, LoadHindered("full"))
    assert given_up.load is not None
    assert given_up.load.broken == LoadHindered("full")
    assert broken(given_up, LoadHindered("c", {ONE: 130})) == given_up


def test_the_next_attempt_has_a_table_of_its_own_and_the_last_one_goes() -> None:
    """What the old table held at first still counts."""
    later = begun_load(at(begun(), 200), T, NEXT, Load("load-1", {ONE: 200}))
    rebuild = later.rebuilds[T]
    assert (rebuild.into, rebuild.until, rebuild.leftover) == (NEXT, {ONE: 99}, (NEW,))
    spilled = replace(later, spills={NEW: SpillMark(1, {ONE: (100, 110)})})
    clean = tidied(spilled, T)
    assert clean.rebuilds[T].leftover == ()
    assert (clean.targets[NEW], clean.spills) == (TargetMark(None, {}), {})


def test_given_up_the_old_table_gets_what_came_meanwhile() -> None:
    """Also from partitions of which it had nothing before."""
    both = begun_load(recorded(), T, NEW, Load("load-1", {ONE: 100, TWO: 100}))
    states = cancelled(at(both, 300), T).partitions
    assert (states[ONE].frontier, states[TWO].frontier) == (100, 100)


def test_given_up_after_attempts_it_gets_what_came_since_the_first() -> None:
    """Also a table that was not there: each attempt began further on, and took its messages."""
    nothing = replace(recorded(), targets={})
    first = begun_load(nothing, "lake.s.new", NEW, Load("load-1", {ONE: 100}))
    later = begun_load(at(first, 200), "lake.s.new", NEXT, Load("load-1", {ONE: 200}))
    assert cancelled(at(later, 300), "lake.s.new").partitions[ONE].frontier == 100


def test_given_up_after_the_log_lost_some_the_position_is_in_the_log() -> None:
    """The old table is to say what it lacks. What the pipeline itself has not read is no part of
    it: a start says that."""
    far = at(begun(), 300)
    kept, some, more = (cancelled(far, T, {ONE: low}) for low in (100, 200, 400))
    assert (kept.partitions[ONE].frontier, kept.rebuilds[T].lost) == (100, {})
    assert (some.partitions[ONE].frontier, some.rebuilds[T].lost) == (200, {ONE: 200})
    assert (more.partitions[ONE].frontier, more.rebuilds[T].lost) == (300, {ONE: 300})
    assert decode(encode(some)) == some


def test_it_ends_without_a_trace() -> None:
    """What could not be removed of earlier attempts stays listed, and is no rebuild any more."""
    later = begun_load(begun(), T, NEXT, Load("load-1", {ONE: 100}))
    kept = ended(replace(later, spills={NEW: SpillMark(1, {ONE: (100, 110)})}), T)
    assert (kept.rebuilding, kept.spills) == ({}, {})
    assert kept.rebuilds[T] == Rebuild(NEW, {}, cancelled=True)
    assert ended(kept, T).rebuilds == {}


@pytest.mark.parametrize(
    "load",
    [LOAD, replace(LOAD, ends={ONE: 7}), replace(LOAD, broken=LoadHindered("why", {ONE: 3}))],
)
def test_its_text_comes_back(load: Load) -> None:
    """Whatever it is."""
    snapshot = begun_load(begun_load(recorded(), T, NEW, load), T, NEXT, load)
    assert decode(encode(snapshot)) == snapshot
    late = refused(snapshot, T, SwapRefused("a lock", 2))
    assert decode(encode(late)) == late


def test_an_older_version_refuses_it_and_reads_all_others() -> None:
    """It would write the stream beside the loaded rows. Without a load the text is as it was."""
    assert "load" not in encode(recorded())
    plain = replace(recorded(), rebuilds={T: Rebuild(NEW, {ONE: 9})})
    assert '"load"' not in encode(plain)
    assert "leftover" not in encode(plain)
    unknown = encode(begun()).replace('"since"', '"before"')
    with pytest.raises(NewerSnapshot):
        decode(_signed(unknown))


def _signed(text: str) -> str:
    """With a checksum that fits."""
    document = json.loads(text)
    body = msgspec.json.encode(document["body"], order="sorted")
    document["sha256"] = hashlib.sha256(body).hexdigest()
    return json.dumps(document)
