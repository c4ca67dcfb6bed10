"""Whatever a file or a record of ours may hold is damage that is named; nothing ends by it."""

from __future__ import annotations

import json
import zlib
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from daemon.operations.engine.record import DamagedJob, JobRequest, decode, encode, new_job
from daemon.operations.engine.store import JobStore
from daemon.operations.signals import SignalRefused, read_signal
from daemon.state.dead_letters.lines import line_of, members_of
from daemon.state.pauses import Pause, Pauses, PausesUnreadable
from daemon.state.spills.done import read_done
from daemon.state.spills.file import SpillFolder
from offsets.snapshot_text import DamagedSnapshot
from offsets.snapshot_text import decode as decode_snapshot
from sources.base.letter import NotALetter, from_document, from_text
from sources.kafka.topic_records import Entries
from tests.changes.model.test_printable import HOSTILE, JSON

IN_ONE_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
BYTES = st.binary(max_size=60) | JSON.map(lambda value: json.dumps(value).encode())


@IN_ONE_FOLDER
@given(BYTES)
def test_a_job_s_file_may_hold_anything(tmp_path: Path, data: bytes) -> None:
    """It is reported, and the others are read."""
    store = JobStore(tmp_path)
    job = new_job(JobRequest("load", "p"), 1, "load-1")
    store.save(job)
    (tmp_path / "jobs" / "bad.json").write_bytes(data)
    assert store.load().jobs == (job,)
    assert len(store.load().damage) == 1


@given(JSON, HOSTILE)
@example("\udcff", "\udcff")
def test_a_job_s_body_may_hold_anything(body: object, text: str) -> None:
    """With a version that fits; huge numbers and half characters too."""
    for inner in (body, {"id": text, "wanted": body}, {"id": "a", "memory": {"n": 2**70}}):
        with pytest.raises(DamagedJob):
            decode(json.dumps({"version": 1, "sha256": text, "body": inner}))


@given(HOSTILE, JSON)
@example("\udcff", {"\ud800": "\udcff"})
def test_a_job_keeps_the_text_of_its_end(text: str, value: object) -> None:
    """Whatever a database, a function or an argument said."""
    wanted = JobRequest("load", text, (text,), {"x": value}, text, text)
    job = replace(new_job(wanted, 1, "load-1"), message=text, memory={text: value})
    encode(job).encode()
    assert decode(encode(job)) == job


def test_a_folder_in_the_place_of_a_job_is_damage(tmp_path: Path) -> None:
    """It keeps no daemon from starting."""
    (tmp_path / "jobs" / "load-1.json").mkdir(parents=True)
    jobs, damage = JobStore(tmp_path).load()
    assert jobs == ()
    assert "load-1.json" in damage[0]


@IN_ONE_FOLDER
@given(
    BYTES | st.sampled_from([b"[" * 60_000, b'{"version": 1, "paused": {"p": {"since_ms": "x"}}}'])
)
def test_the_pauses_may_hold_anything(tmp_path: Path, data: bytes) -> None:
    """Named, with the way out."""
    (tmp_path / "pauses.json").write_bytes(data)
    with pytest.raises(PausesUnreadable):
        Pauses(tmp_path).load()


@IN_ONE_FOLDER
@given(HOSTILE)
@example("\ud800\x1b")
def test_a_pause_is_recorded_with_any_reason(tmp_path: Path, text: str) -> None:
    """It is what a person typed."""
    (tmp_path / "pauses.json").unlink(missing_ok=True)
    Pauses(tmp_path).put("p", Pause(1, text))
    again = Pauses(tmp_path)
    again.load()
    assert again.now() == {"p": Pause(1, text)}


@given(BYTES)
def test_what_is_read_at_the_start_may_be_anything(data: bytes) -> None:
    """Positions, letters, records of the topics."""
    text = data.decode("utf-8", "surrogateescape")
    with pytest.raises(DamagedSnapshot):
        decode_snapshot(text)
    with pytest.raises(DamagedSnapshot):
        decode_snapshot(text, edited=True)
    members_of(data + b"\n")
    members_of(line_of({"a": 1})[:8] + data)
    with suppress(NotALetter):
        from_document(from_text(data))
    with pytest.raises(SignalRefused):
        read_signal(data, data, ["p"])
    with pytest.raises(SignalRefused):
        read_signal(None, data, ["p"])


@pytest.mark.parametrize("deep", [b"[" * 100_000, b'{"a":' * 100_000])
def test_what_is_nested_without_end_is_damage(tmp_path: Path, deep: bytes) -> None:
    """The parser gives up with an error of its own kind."""
    with pytest.raises(NotALetter):
        from_text(deep)
    text = deep + b', "crc32": '
    assert members_of(text + b"%d}\n" % zlib.crc32(deep)) is None
    (tmp_path / "x.done").write_bytes(deep)
    assert read_done(tmp_path / "x.done") == {}
    (tmp_path / "p.spill").mkdir()
    (tmp_path / "p.spill" / "x.spill").write_bytes(deep + b"\n")
    assert SpillFolder(tmp_path, "p").held() == ()
    with pytest.raises(DamagedSnapshot):
        decode_snapshot(deep.decode())
    with pytest.raises(DamagedJob):
        decode(deep.decode())
    with pytest.raises(SignalRefused):
        read_signal(None, deep, ["p"])


@IN_ONE_FOLDER
@given(BYTES)
def test_a_done_file_may_be_anything(tmp_path: Path, data: bytes) -> None:
    """It counts as missing."""
    (tmp_path / "x.done").write_bytes(data)
    read_done(tmp_path / "x.done")


def test_entries_of_the_positions_topic_may_be_anything() -> None:
    """See ``Entries.apply``: it raises nothing."""
    entries = Entries("p", "g")
    for data in (b"\xff", b"{}", b"[1]", b'{"a": "\\ud800"}', b"", None):
        entries.apply(data, data, "t:0 offset 1")
