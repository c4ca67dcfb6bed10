"""The configuration's sections of the daemon itself, and Spark's."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """Unknown keys are refused, values are not converted, numbers are finite, nothing changes once
    it is read."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


def flatten(table: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """``bootstrap.servers = "…"`` is a nested table to TOML; here it is one name."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            flat |= flatten(value, f"{name}.")
        else:
            flat[name] = value
    return flat
