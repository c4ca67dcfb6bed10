"""A handler whose statements reject a row."""

from __future__ import annotations

from typing import Any


def apply(batch: Any, context: Any) -> None:
    """Takes all."""
    batch.read_all()


def statement(context: Any, kind: str, to: str | None) -> None:
    """There is no row to give up."""
    context.reject({}, kind)
