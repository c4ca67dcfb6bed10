"""Quotas of pipelines: only what somebody set can be too much."""

from __future__ import annotations

from pathlib import Path

import pytest

from actors.runtime.lending import Lender
from daemon.config.config import Config
from daemon.config.file import ConfigError
from daemon.config.sections import SMALLEST_QUEUE_KBYTES
from tests.daemon.operations.reload.test_difference import TEXT, read


def of(tmp_path: Path, p: str, q: str = "", more: int = 0) -> Config:
    """Two pipelines with those quotas, and so many without."""
    p_text, q_text = TEXT.split("[pipeline.q]")
    text = f"{p_text}quota = {{{p}}}\n[pipeline.q]{q_text}quota = {{{q}}}\n"
    for number in range(more):
        one = q_text.replace("other.", f"more{number}.")
        text += f"[pipeline.r{number}]{one}"
    return read(tmp_path, text)


@pytest.mark.parametrize("more", [99, 498])
def test_many_pipelines_without_quotas_are_no_mistake(tmp_path: Path, more: int) -> None:
    """101 of them were refused for shares that nobody had set."""
    assert len(of(tmp_path, "", more=more).pipeline) == more + 2
    assert len(of(tmp_path, "memory = 0.9", more=more).pipeline) == more + 2


@pytest.mark.parametrize(
    ("p", "q", "said"),
    [
        ("memory = 0.7", "memory = 0.4", "together 1.1, which is more than 1"),
        ("memory = 1", "", "which leaves less than 0.01 to the pipelines without one"),
        ("memory = 0", "", "greater than or equal to 0.01"),
        ("writers = 0", "", "greater than or equal to 1"),
        ("rows = 5", "", "rows"),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path: Path, p: str, q: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        of(tmp_path, p, q)


def test_quotas_may_be_all_there_is(tmp_path: Path) -> None:
    assert len(of(tmp_path, "memory = 0.7", "memory = 0.3").pipeline) == 2
    assert len(of(tmp_path, "memory = 0.99").pipeline) == 2


def test_all_parts_together_are_the_budget(tmp_path: Path) -> None:
    """Queues, mailboxes and buffers; and each has room for one message of the usual size."""
    config = of(tmp_path, "")
    memory = config.memory
    queues = sum(config.queue_kbytes(name) for name in config.pipeline) * 1024
    whole = queues + memory.mailboxes_bytes + memory.buffers_bytes
    assert 0.99 * memory.budget_bytes < whole <= memory.budget_bytes


def test_a_queue_takes_a_fetch_however_many_pipelines_there_are(tmp_path: Path) -> None:
    assert of(tmp_path, "", more=498).queue_kbytes("p") == SMALLEST_QUEUE_KBYTES


def test_of_five_hundred_pipelines_each_has_room_of_its_own(tmp_path: Path) -> None:
    """Also while one of them has borrowed all that is lent."""
    config = of(tmp_path, "", more=498)
    lender = Lender(config.memory.buffers_bytes)
    accounts = [lender.account(name) for name in config.pipeline]
    assert accounts[0].hold(int(config.memory.buffers_bytes * 0.75))
    assert all(account.hold(64 << 10) for account in accounts[1:])
