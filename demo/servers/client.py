"""Asks a database server through its own command-line client: a script, in a session of its own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from actors.runtime.programs import Program, ProgramError

_ANSWER_WITHIN_S = 120.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What a script came to: lines of columns, and the error that ended it, if one did."""

    rows: tuple[tuple[str, ...], ...]
    error: str = ""

    def problem(self, server: Program) -> str:
        """The error, or nothing. Raises ProgramError where the server is gone."""
        if self.error and not server.runs:
            raise ProgramError(f"{server.name} has ended: {server.tail()}")
        return self.error


def answer(
    client: Sequence[str | Path], script: str, environment: Mapping[str, str] | None = None
) -> Answer:
    """Run a script; the first error ends it, and rolls back. ``client``: the command, which prints
    a row a line, its columns between tabs."""
    done = subprocess.run(
        client,
        input=script.encode(),
        capture_output=True,
        check=False,
        timeout=_ANSWER_WITHIN_S,
        env=os.environ | dict(environment or {}),
    )
    rows = tuple(tuple(line.split("\t")) for line in done.stdout.decode().splitlines())
    error = done.stderr.decode(errors="replace").strip()
    return Answer(rows, error if done.returncode else "")
