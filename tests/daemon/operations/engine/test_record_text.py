"""A job's text: what is written is read, and nothing else is."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.operations.engine.record import (
    DamagedJob,
    Job,
    JobProgress,
    JobRequest,
    State,
    decode,
    encode,
    new_job,
)

TEXTS = st.text(max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(TEXTS, JSON, max_size=4)
COUNTS = st.integers(0, 2**53)
FLOATS = st.none() | st.floats(0, 1e12)
JOBS = st.builds(
    Job,
    id=st.from_regex(r"[a-z][a-z0-9-]{0,20}", fullmatch=True),
    wanted=st.builds(JobRequest, TEXTS, TEXTS, st.tuples(TEXTS, TEXTS), OBJECTS, TEXTS, TEXTS),
    state=st.sampled_from(State),
    wish=st.sampled_from(["", "pause", "cancel"]),
    progress=st.builds(JobProgress, COUNTS, st.none() | COUNTS, TEXTS, FLOATS, FLOATS),
    message=TEXTS,
    memory=OBJECTS,
    result=OBJECTS,
    created_ms=COUNTS,
    started_ms=st.none() | COUNTS,
    ended_ms=st.none() | COUNTS,
    attempts=COUNTS,
    steps=COUNTS,
)
JOB = new_job(JobRequest("load", "shop", ("lake.s.t",), {"rows": 7}), 1_000, "load-1")


@given(JOBS)
def test_what_is_written_is_read(job: Job) -> None:
    """Every member, whatever its text."""
    assert decode(encode(job)) == job


def changed(**members: Any) -> str:
    document = json.loads(encode(JOB))
    return json.dumps(document | members)


def test_a_cut_or_altered_text_is_damaged() -> None:
    """Each says how."""
    whole = encode(JOB)
    for text, why in (
        (whole[: len(whole) // 2], "not JSON"),
        (whole.replace('"rows": 7', '"rows": 8'), "the checksum does not match"),
        ("{}", "not a job's file"),
        (changed(version=2), "version 2, this binlogd reads 1"),
    ):
        with pytest.raises(DamagedJob, match=why):
            decode(text)


@pytest.mark.parametrize("place", [(), ("wanted",), ("progress",)])
def test_a_member_of_a_newer_version_is_not_left_out(place: tuple[str, ...]) -> None:
    """It may ask for something that this one would not do."""
    from daemon.operations.engine.record import _checksum

    body = json.loads(encode(JOB))["body"]
    inner = body
    for name in place:
        inner = inner[name]
    inner["gently"] = True
    text = changed(body=body, sha256=_checksum(body))
    with pytest.raises(DamagedJob, match=r"a newer binlogd wrote it: .*gently is unknown"):
        decode(text)


def test_a_person_may_indent_it_otherwise() -> None:
    """The content counts."""
    assert decode(json.dumps(json.loads(encode(JOB)), indent=4)) == JOB


@pytest.mark.parametrize("name", ["", "../x", "Load-1", "load/1", "load.1", "l" * 65])
def test_an_id_that_names_no_file_of_ours_is_refused(name: str) -> None:
    """It would be a path to somewhere else."""
    if name:
        with pytest.raises(ValueError, match="is no job's name"):
            new_job(JOB.wanted, 0, name)
    with pytest.raises(DamagedJob, match="is no job's name"):
        decode(encode(replace(JOB, id=name)))
