"""What ``/healthz`` and ``/readyz`` say of a status document. Pure."""

from __future__ import annotations

from daemon.admin.status import document as doc
from daemon.admin.status.conditions import UNREADY
from daemon.admin.status.health import shown


def verdict(path: str, status: doc.Status) -> tuple[bool, list[str]]:
    """Whether all is well, and lines about what is not."""
    kinds = {"stuck"} if path == "/healthz" else UNREADY
    found = [f"{one.who}: {one.line}" for one in shown(status) if one.kind in kinds]
    if not found:
        return True, ["ok"]
    return False, found if path == "/healthz" else [status["state"], *found]
