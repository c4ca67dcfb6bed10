"""What an operation asks of the actors, and what the desk keeps of operations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pykka
import pytest

from actors.contract.addresses import Address
from actors.contract.messages import RetryAnswer
from daemon.operations.engine import desk, here
from daemon.operations.engine.desk import Desk
from daemon.operations.engine.here import InDaemon
from daemon.operations.engine.operation import parsed, perform
from daemon.operations.registry import operations
from daemon.operations.targets.retry import RetryOperation
from daemon.state.control import ControlError
from tests.daemon.operations.job_rig import JobRig

FIRST, SECOND, GONE = (Address("shop", "processor", number) for number in range(3))


class Actors:
    """A directory of actors that answer at once, or (None) never."""

    def __init__(self, answers: dict[Address, object]) -> None:
        self.answers = answers

    def has(self, actor: Address) -> bool:
        return actor in self.answers

    def question(self, actor: Address, message: object) -> pykka.Future[Any]:
        future: pykka.Future[Any] = pykka.ThreadingFuture()
        if (answer := self.answers[actor]) is not None:
            future.set(answer)
        return future


def asking(folder: Path, answers: dict[Address, object]) -> tuple[InDaemon, list[str]]:
    lent, said = JobRig(folder).lent(), list[str]()
    lent.directory, lent.processors = Actors(answers), (FIRST, SECOND, GONE)  # type: ignore[assignment]
    return InDaemon(lent, lambda good, line: said.append(line), lambda seconds: True), said


def retry(daemon: InDaemon) -> int:
    operation = RetryOperation()
    return perform(operation, parsed(operation, {"target": "lake.s.t"}), daemon, True).status.value


def test_a_busy_actor_does_not_hide_another_ones_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one decodes a batch; the target is the second one's."""
    monkeypatch.setattr(here, "ANSWER_WITHIN_S", 0.05)
    daemon, said = asking(tmp_path, {FIRST: None, SECOND: RetryAnswer(True, "is being replayed")})
    assert (retry(daemon), said) == (0, ["is being replayed"])


def test_where_nobody_knows_it_a_busy_one_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not told as unknown: that would be a guess."""
    monkeypatch.setattr(here, "ANSWER_WITHIN_S", 0.05)
    daemon, said = asking(tmp_path, {FIRST: None, SECOND: "no answer of it"})
    assert retry(daemon) == 1
    assert said == [f"{FIRST} has not answered within 0.05 s; try again"]


def test_before_the_actors_run_it_is_not_unknown(tmp_path: Path) -> None:
    daemon, said = asking(tmp_path, {})
    daemon.lent.directory = None
    assert (retry(daemon), said) == (1, ["the daemon is starting; try again"])


def test_an_operation_under_way_keeps_its_ticket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many came and went since."""
    monkeypatch.setattr(desk, "KEPT", 2)
    made = Desk(JobRig(tmp_path).lent(), operations())
    request = {"name": "jobs cancel", "params": {"job": "none"}, "act": True}
    tickets = [made.begin(request)["ticket"] for _ in range(2)]
    made._tasks[tickets[0]].ended.clear()
    tickets += [made.begin(request)["ticket"] for _ in range(5)]
    assert made.look({"ticket": tickets[0]})["status"] == 1
    assert made.look({"ticket": tickets[-1]})["status"] == 1
    with pytest.raises(ControlError, match=f"ticket {tickets[1]}: unknown"):
        made.look({"ticket": tickets[1]})


def test_there_are_so_many_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has a thread."""
    monkeypatch.setattr(desk, "MOST", 0)
    made = Desk(JobRig(tmp_path).lent(), operations())
    with pytest.raises(ControlError, match="0 operations are under way; try again"):
        made.begin({"name": "jobs cancel", "params": {"job": "none"}})
