"""Quotas of pipelines: shares of the memory that together are what there is."""

from __future__ import annotations

from pathlib import Path

import pytest

from daemon.config.file import ConfigError
from tests.daemon.operations.reload.test_difference import TEXT, read


def of(tmp_path: Path, p: str, q: str = "") -> dict[str, float]:
    """The shares of two pipelines with those quotas."""
    p_text, q_text = TEXT.split("[pipeline.q]")
    text = f"{p_text}quota = {{{p}}}\n[pipeline.q]{q_text}quota = {{{q}}}\n"
    return dict(read(tmp_path, text).memory_shares())


def test_without_quotas_they_are_even(tmp_path: Path) -> None:
    assert of(tmp_path, "") == {"p": 0.5, "q": 0.5}


def test_the_others_share_what_is_left(tmp_path: Path) -> None:
    assert of(tmp_path, "memory = 0.2") == {"p": 0.2, "q": 0.8}
    assert of(tmp_path, "memory = 0.2", "memory = 0.3") == {"p": 0.2, "q": 0.3}


@pytest.mark.parametrize(
    ("p", "q", "said"),
    [
        ("memory = 0.7", "memory = 0.4", "together 1.1, which is more than 1"),
        ("memory = 1", "", "which leaves q less than 0.01 each"),
        ("memory = 0", "", "greater than or equal to 0.01"),
        ("writers = 0", "", "greater than or equal to 1"),
        ("rows = 5", "", "rows"),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path: Path, p: str, q: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        of(tmp_path, p, q)


def test_what_a_pipeline_gets_of_the_budgets_is_its_share(tmp_path: Path) -> None:
    """Queue, mailboxes and buffers together are never more than the budget."""
    memory, processors = read(tmp_path, TEXT).memory, 4
    for share in (0.01, 1 / 3, 1.0):
        each = memory.mailbox_bytes(share, processors) + memory.buffer_bytes(share, processors)
        whole = each * processors + memory.queue_kbytes(share) * 1024
        assert 0.99 * memory.budget_bytes * share < whole <= memory.budget_bytes * share
