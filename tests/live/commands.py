"""binlogd's own commands, as an operator gives them to a daemon that runs."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from actors.runtime.java import CHECKOUT

_WITHIN_S = 300.0


@dataclass(frozen=True, slots=True)
class Said:
    """What a command came to."""

    words: tuple[str, ...]
    status: int
    out: str
    error: str

    @property
    def is_broken(self) -> bool:
        """It ended by an exception of its own, not by an answer."""
        return "Traceback" in self.error

    def __str__(self) -> str:
        return f"binlogd {' '.join(self.words)}: status {self.status}: {self.error or self.out}"


class Command:
    """One that is under way beside the caller. One thread's."""

    def __init__(self, config: Path, words: tuple[str, ...], place: Path) -> None:
        """``place``: what it says goes into files that begin so."""
        self._words = words
        self._places = [place.with_suffix(suffix) for suffix in (".out", ".err")]
        with self._places[0].open("wb") as out, self._places[1].open("wb") as error:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "daemon.cli", *words, "--config", str(config)],
                cwd=CHECKOUT, stdin=subprocess.DEVNULL, stdout=out, stderr=error,
            )  # fmt: skip

    def __str__(self) -> str:
        return f"binlogd {' '.join(self._words)}"

    @property
    def runs(self) -> bool:
        """Whether it has not ended yet."""
        return self._process.poll() is None

    def said(self) -> Said:
        """Wait for its end. Raises TimeoutExpired."""
        status = self._process.wait(_WITHIN_S)
        out, error = (place.read_text(errors="replace") for place in self._places)
        return Said(self._words, status, out, error)

    def kill(self) -> None:
        """End it, as somebody who leaves it."""
        self._process.kill()
        self._process.wait()
