"""Why a registry gives no schema: it does not answer, or it has none."""

from __future__ import annotations

from typing import Literal

Cause = Literal["unreachable", "timeout", "refused", "fault", "redirect", "answer"]
"""``refused`` is a login or a right (401, 403), ``fault`` an error of the server (5xx and 429),
``redirect`` an address that is another's, ``answer`` one that no registry gives."""


class RegistryAway(Exception):
    """No answer now, with the reason in one line. The query is repeated later."""

    def __init__(self, cause: Cause, reason: str, status: int = 0) -> None:
        """``status``: of HTTP, where there was an answer."""
        super().__init__(" ".join(reason.split()))
        self.cause: Cause = cause
        self.status = status


class SchemaNotFound(Exception):
    """The registry answers that it has no such schema: one line."""


class SchemaUnfit(Exception):
    """The registry has it, and it can't be used as it is: one line."""
