"""What a handler may do wrong: it is named, tried again or refused, and no row is passed over."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from multiprocessing.connection import wait
from pathlib import Path

import pytest

from actors.runtime.java import CHECKOUT
from changes.model.errors import SinkUnavailable, TargetRefused
from changes.model.model import LEFT, AddColumn, Column, TruncateTable
from changes.model.printable import reason_of
from sparkwriter.function import store
from sparkwriter.function.calls import CountedRows
from tests.sparkwriter.conftest import LANE
from tests.sparkwriter.function.conftest import HANDLERS


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("hang", r"its handler did not return within 1 s"),
        ("leak", r"its handler held \d+ MB, more than memory_bytes allows"),
        ("die", r"its handler's process ended with status 7"),
        ("raise", r"its handler raised: .*odd\.py.*ValueError: no luck with orders"),
    ],
)
def test_it_fails_once(how: str, said: str, writer, staging, orders, tmp_path: Path) -> None:
    """The same batch is applied when it is offered again, in another process where that one was
    ended."""
    deadline = 1.0 if how == "hang" else 60.0
    sink = writer(how=how, once=str(tmp_path / "once"), deadline_s=deadline, memory=400 << 20)
    batch = staging.batch(orders(("U", 1, "a", 1)), 1)
    with pytest.raises(SinkUnavailable, match=said):
        sink.write(batch)
    assert sink.open(batch.target).hwms == {}
    assert sink.write(batch).hwms == {LANE: 1}
    assert len((tmp_path / "rows").read_text().splitlines()) == 1


def test_it_returns_too_early(writer, staging, orders) -> None:
    """It is wrong, and stays so: refused."""
    with pytest.raises(
        TargetRefused, match=r"cache.shop.orders: it returned with 2 rows .* unread"
    ):
        writer("odd:early").write(staging.batch(orders(("U", 1, "a", 1), ("D", 2, None, None)), 1))


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("nowhere:apply", "nowhere:apply can't be imported: .*ModuleNotFoundError"),
        ("odd:nothing", "odd:nothing: module odd has no function nothing"),
    ],
)
def test_it_is_not_there(entry: str, said: str, writer, staging, orders) -> None:
    """Named as the configuration has it."""
    with pytest.raises(TargetRefused, match=said):
        writer(entry).write(staging.batch(orders(("U", 1, "a", 1)), 1))


def test_rows_are_rejected(writer, staging, orders, tmp_path: Path) -> None:
    """They are kept with their reasons, for this user alone, before the marks move."""
    rows = orders(("U", 1, "a", 1), ("D", 2, None, None), (LEFT, 3, "left out", 3))
    batch = staging.batch(rows, 1)
    assert writer(how="reject").write(batch).hwms == {LANE: 1}
    path = tmp_path / "state" / "rejected.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["row"] for line in lines] == [
        {"_op": "U", "id": 1, "note": "a", "n": 1},
        {"_op": "D", "id": 2, "note": None, "n": None},
        {"_op": "D", "id": 3, "note": None, "n": None},
    ]
    assert {(line["target"], line["reason"]) for line in lines} == {
        ("cache.shop.orders", "it is bad")
    }
    assert path.stat().st_mode & 0o777 == 0o600


def test_rejected_rows_that_nobody_looks_at_hold_the_next_ones(
    writer, staging, orders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are nowhere else: none is dropped, and their marks don't move. A file that was moved
    away is made again."""
    monkeypatch.setattr(store, "MOST_REJECTED_BYTES", 1)
    path, sink = tmp_path / "state" / "rejected.jsonl", writer(how="reject")
    sink.write(staging.batch(orders(("U", 1, "a", 1)), 1))
    kept = path.read_text()
    later = staging.batch(orders(("U", 2, "b", 2)), 2)
    with pytest.raises(
        SinkUnavailable, match=r"cache\.shop\.orders: .*rejected\.jsonl has .* move it"
    ):
        sink.write(later)
    assert (path.read_text(), sink.open(later.target).hwms) == (kept, {LANE: 1})
    path.rename(tmp_path / "looked at")
    assert sink.write(later).hwms == {LANE: 2}
    assert len(path.read_text().splitlines()) == 1


def test_rows_are_rejected_with_half_a_character(
    writer, staging, orders, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the row, in a column's name, in the reason: kept in a form that everybody can read."""
    sink = writer(how="reject half", once=str(tmp_path / "once"))
    sink.write(staging.batch(orders(("U", 1, "a", 1)), 1))
    (line,) = (tmp_path / "state" / "rejected.jsonl").read_text("utf-8").splitlines()
    kept = json.loads(line)
    assert kept["reason"] == "it is \\udcff\n"
    assert kept["row"]["note"] == "\\ud800"
    assert "udcff" in capsys.readouterr().out


def test_what_it_raises_may_hold_half_a_character(writer, staging, orders, tmp_path: Path) -> None:
    """The reason that the writer reports is a text that can be written anywhere."""
    sink = writer(how="raise half", once=str(tmp_path / "once"))
    with pytest.raises(SinkUnavailable) as raised:
        sink.write(staging.batch(orders(("U", 1, "a", 1)), 1))
    assert reason_of(raised.value).isprintable()


def test_too_many_are_rejected(writer, staging, orders) -> None:
    """Then the handler is wrong, not the rows."""
    with pytest.raises(TargetRefused, match="more than 10000 rows are rejected: it is bad"):
        writer(how="reject all").write(staging.batch(orders(("U", 1, "a", 1)), 1))


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("swallow all", "more than 10000 rows are rejected: it is bad"),
        ("swallow one", "a rejected row can't be kept: .*Circular reference"),
        ("swallow and raise", "a rejected row can't be kept: .*Circular reference"),
    ],
)
def test_what_reject_refuses_can_not_be_swallowed(
    how: str, said: str, writer, staging, orders, tmp_path: Path
) -> None:
    """The row would be nowhere, and its batch count as done. An error after it does not hide it."""
    sink = writer(how=how)
    batch = staging.batch(orders(("U", 1, "a", 1)), 1)
    with pytest.raises(TargetRefused, match=said):
        sink.write(batch)
    assert sink.open(batch.target).hwms == {}
    assert not (tmp_path / "state" / "rejected.jsonl").exists()


def test_a_copy_that_comes_back_says_nothing(writer, staging, orders, tmp_path: Path) -> None:
    """Two answers to one call: the second would be taken for that to the next, whose rows would
    count as applied."""
    sink = writer(how="forks and comes back", once=str(tmp_path / "once"))
    sink.write(staging.batch(orders(("U", 1, "a", 1)), 1))
    (tmp_path / "once").unlink()
    sink.write(staging.batch(orders(("U", 2, "b", 2)), 2))
    assert len((tmp_path / "rows").read_text().splitlines()) == 2
    with pytest.raises(TargetRefused, match="no function `statement` for truncate"):
        sink.write(staging.batch(None, 3, ddl=[[TruncateTable()]]))


def test_a_process_that_ends_is_seen_whatever_it_has_forked(
    writer, staging, orders, tmp_path: Path
) -> None:
    """What it leaves behind holds the pipe open; the write does not wait for its deadline."""
    sink = writer(how="forks and ends", once=str(tmp_path / "once"), deadline_s=15.0)
    batch = staging.batch(orders(("U", 1, "a", 1)), 1)
    with pytest.raises(SinkUnavailable, match="its handler's process ended with status 7"):
        sink.write(batch)
    assert sink.write(batch).hwms == {LANE: 1}


def test_no_class_of_the_handler_comes_into_the_daemon(
    writer, staging, orders, tmp_path: Path
) -> None:
    """It can't import the module: reading such an answer ended the daemon, and each start."""
    sink = writer(how="reject own text", once=str(tmp_path / "once"))
    batch = staging.batch(orders(("U", 1, "a", 1)), 1)
    assert sink.write(batch).hwms == {LANE: 1}
    (line,) = (tmp_path / "state" / "rejected.jsonl").read_text().splitlines()
    assert json.loads(line)["reason"] == "it is bad"


@pytest.mark.parametrize(("how", "said"), [("text", None), ("object", "gave a Mark, which is no")])
def test_marks_of_a_class_of_its_own(
    how: str, said: str | None, writer, staging, orders, tmp_path: Path
) -> None:
    """A text is a text; anything else is refused by its name."""
    sink = writer("own_marks:apply", marks=how)
    batch = staging.batch(orders(("U", 1, "a", 1)), 1)
    if said is None:
        sink.write(batch)
        assert sink.open(batch.target).hwms == {LANE: 1}
    else:
        with pytest.raises(TargetRefused, match=said):
            sink.write(batch)


def test_an_answer_that_can_not_be_read_is_a_fault_of_the_handler(
    writer, staging, orders, tmp_path: Path
) -> None:
    """And never of the writer, which all targets share."""
    sink = writer(how="speaks for itself", once=str(tmp_path / "once"))
    batch = staging.batch(orders(("U", 1, "a", 1)), 1)
    with pytest.raises(SinkUnavailable, match="its handler's answer can't be read"):
        sink.write(batch)
    assert sink.write(batch).hwms == {LANE: 1}


def test_a_row_that_a_thread_rejects_later_is_refused(
    writer, staging, orders, tmp_path: Path
) -> None:
    """Its batch is done without it, so the thread gets an error, and not silence."""
    sink = writer(how="reject late", once=str(tmp_path / "once"))
    sink.write(staging.batch(orders(("U", 1, "a", 1)), 1))
    said = tmp_path / "once.said"
    for _ in range(100):
        if said.exists() and said.read_text():
            break
        wait([], 0.1)
    assert said.read_text() == "a row is rejected after its call has returned: it is bad"


def test_a_statement_rejects_no_row(writer, staging, orders) -> None:
    """It has none: what it gives up would be kept nowhere."""
    sink = writer("stating:apply")
    sink.write(staging.batch(orders(("U", 1, "a", 1)), 1))
    with pytest.raises(TargetRefused, match="a row is rejected where there are none: truncate"):
        sink.write(staging.batch(None, 2, ddl=[[TruncateTable()]]))


def test_a_batch_that_can_not_be_shown_is_not_taken(
    staging, orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A handler that swallows the reader's error has not read those rows."""
    batch = staging.batch(orders(("U", 1, "a", 1)), 1)
    assert batch.path is not None
    rows = CountedRows(batch.path, ("id",))

    def broken(_: object) -> list[object]:
        raise ValueError("it can't be shown")

    monkeypatch.setattr(rows, "_shown", broken)
    with pytest.raises(ValueError, match="it can't be shown"):
        rows.reader.read_all()
    assert rows.left == 1


def test_a_statement_that_it_has_no_function_for(writer, staging, orders) -> None:
    """Emptying the table is refused by name; another column is no statement to a handler."""
    sink = writer(how="")
    sink.write(staging.batch(orders(("U", 1, "a", 1)), 1))
    added = AddColumn(Column("more", orders(("U", 1, "a", 1)).schema.field("n").type), 7)
    assert sink.write(staging.batch(None, 2, ddl=[[added]])).hwms == {LANE: 2}
    with pytest.raises(TargetRefused, match="no function `statement` for truncate"):
        sink.write(staging.batch(None, 3, ddl=[[TruncateTable()]]))


def test_its_process_ends_with_the_daemon(staging, orders, tmp_path: Path) -> None:
    """``kill -9`` of the daemon while the handler is at work: nothing goes on writing."""
    batch = staging.batch(orders(("U", 1, "a", 1)), 1)
    settings = {"file": str(tmp_path / "rows"), "how": "hang"}
    script = f"""
from pathlib import Path
from sparkwriter.function.calls import Apply, CallContext, StartHandler
from sparkwriter.function.process import HandlerProcess
from changes.model.model import TargetName
process = HandlerProcess(StartHandler("odd:apply", ({HANDLERS!r},), {settings!r}), 60.0, 1 << 30)
process.started()
print(process.pid, flush=True)
about = CallContext(TargetName("cache", "shop", "orders"), ("id",), "upsert", {{}}, "{{}}", 1)
process.call(Apply(about, {batch.path!r}))
"""
    own = os.environ | {"PYTHONPATH": str(CHECKOUT)}
    daemon = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, env=own)
    assert daemon.stdout is not None
    child = os.pidfd_open(int(daemon.stdout.readline()))
    daemon.kill()
    daemon.wait()
    ended = wait([child], 30.0)
    os.close(child)
    assert ended
