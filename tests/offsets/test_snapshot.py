"""The offset file's text."""

from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offsets.position import LogEpoch, TopicPartition
from offsets.snapshot import PartitionState, Snapshot, TargetMark
from offsets.snapshot_text import DamagedSnapshot, NewerSnapshot, decode, encode

SOURCES = st.builds(
    TopicPartition, st.from_regex(r"[a-zA-Z0-9._-]{1,20}", fullmatch=True), st.integers(0, 999)
)
OFFSETS = st.integers(0, 2**62)
LOGS = st.none() | st.builds(LogEpoch, st.integers(0, 99), st.integers(1, 2**62))
SNAPSHOTS = st.builds(
    Snapshot,
    pipeline=st.text(max_size=10),
    group=st.text(max_size=10),
    topic_ids=st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3),
    partitions=st.dictionaries(
        SOURCES,
        st.builds(
            PartitionState,
            OFFSETS,
            st.none() | OFFSETS,
            LOGS,
            st.booleans(),
            adopted=st.none() | OFFSETS,
            reread=st.none() | OFFSETS,
            begin=st.none() | OFFSETS,
            withdraws=st.none() | OFFSETS,
        ),
        max_size=4,
    ),
    targets=st.dictionaries(
        st.text(max_size=12),
        st.builds(
            TargetMark,
            st.none() | st.text(max_size=9),
            st.dictionaries(SOURCES, OFFSETS),
            rows_may_differ=st.none() | st.text(max_size=9),
        ),
        max_size=4,
    ),
    forced=st.none() | st.text(max_size=5),
    formats=st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=2),
)


@given(SNAPSHOTS)
def test_what_is_written_is_read_back(snapshot: Snapshot) -> None:
    """Encoding and decoding give the same value."""
    assert decode(encode(snapshot)) == snapshot


def example() -> str:
    return encode(
        Snapshot("shop", "g", partitions={TopicPartition("binlog", 0): PartitionState(41, 40)})
    )


@pytest.mark.parametrize("cut", [0, 1, 40, -2])
def test_a_file_cut_short_is_damaged(cut: int) -> None:
    """A crash in the middle of a write by another program leaves such a file."""
    with pytest.raises(DamagedSnapshot):
        decode(example()[:cut])


def test_an_altered_number_is_damaged() -> None:
    """A flipped digit would skip or repeat changes: the checksum sees it."""
    with pytest.raises(DamagedSnapshot, match="checksum"):
        decode(example().replace("41", "91"))


def test_a_newer_layout_is_refused_by_number() -> None:
    """A downgrade must not misread the file."""
    document = json.loads(example())
    document["version"] = 2
    with pytest.raises(DamagedSnapshot, match="version 2, this binlogd reads 1"):
        decode(json.dumps(document))


@pytest.mark.parametrize("more", [{"ledger": {}}, {"forced": 7}])
def test_a_whole_file_with_what_is_not_known_is_of_a_newer_version(more: dict[str, object]) -> None:
    """Left out in silence, it would be lost with the next save."""
    document = json.loads(example())
    document["body"] |= more
    canonical = json.dumps(document["body"], sort_keys=True, separators=(",", ":"))
    document["sha256"] = hashlib.sha256(canonical.encode()).hexdigest()
    with pytest.raises(NewerSnapshot, match="a member is missing, unknown or has the wrong type"):
        decode(json.dumps(document))


def test_an_editors_byte_order_mark_is_no_damage() -> None:
    """Some editors put one before whatever they save, and turn the line ends."""
    assert decode("\ufeff" + example().replace("\n", "\r\n")) == decode(example())


def test_nesting_without_end_is_damage() -> None:
    """It is told like any other, not by a traceback."""
    with pytest.raises(DamagedSnapshot, match="not JSON"):
        decode("[" * 200_000)


def test_a_reindented_file_is_whole() -> None:
    """A person may look at it with a formatter."""
    assert decode(json.dumps(json.loads(example()))) == decode(example())


def test_a_topic_with_dots_and_dashes_is_read_back() -> None:
    """The partition number is what follows the last colon."""
    source = TopicPartition("a.b-c_d", 12)
    assert TopicPartition.parse(str(source)) == source


@pytest.mark.parametrize("text", ["", "a", ":1", "a:", "a:x", "a:-1"])
def test_what_is_no_partition_is_refused(text: str) -> None:
    """A name that can't be read is an error, not partition zero."""
    with pytest.raises(ValueError, match="not a topic:partition"):
        TopicPartition.parse(text)


def edited(old: str, new: str) -> str:
    text = example()
    assert old in text
    return text.replace(old, new)


def test_an_edited_file_needs_no_checksum() -> None:
    """A person can't make one; whoever writes the file again makes it anew."""
    found = decode(edited('"frontier": 41', '"frontier": 91'), edited=True)
    assert found.partitions[TopicPartition("binlog", 0)].frontier == 91
    document = json.loads(example())
    del document["sha256"]
    assert decode(json.dumps(document), edited=True) == decode(example())


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"frontier": 41', '"frontier": "41"', r"Expected `int`, got `str` .*partitions"),
        ('"frontier": 41', '"frontier": -41', "Expected `int` >= 0"),
        ('"frontier": 41', '"frontier": 4.5', "Expected `int`, got `float`"),
        ('"frontier": 41', '"fronteir": 41', "unknown field `fronteir`"),
        ('"confirmed": 40', '"confirmed": true', "Expected `int | null`, got `bool`"),
        ('"binlog:0"', '"binlog"', "not a topic:partition: 'binlog'"),
        ('"forced": null', '"forced": null, "x": 1', "unknown field `x`"),
        ('"forced": null', '"forced": null, "formats": {"t": 1}', r"`str`, got `int` .*formats"),
    ],
)
def test_a_slip_of_the_pen_is_told_with_its_place(old: str, new: str, said: str) -> None:
    """Taken as it is, it would be found at the next start, or never."""
    with pytest.raises(DamagedSnapshot, match=said):
        decode(edited(old, new), edited=True)


@given(SNAPSHOTS)
def test_the_checksum_is_that_of_the_files_of_before(snapshot: Snapshot) -> None:
    """Sorted members, no white space, no escapes: what older versions wrote stays readable."""
    document = json.loads(encode(snapshot))
    plain = json.dumps(
        document["body"], sort_keys=True, separators=(",", ":"), ensure_ascii=False
    ).encode()
    assert document["sha256"] == hashlib.sha256(plain).hexdigest()
