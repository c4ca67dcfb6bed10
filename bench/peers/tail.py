"""Reads a log of JSON lines while another process writes it."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_LOOK_EVERY_S = 0.02
"""How late a line may be seen: small against any run, and no load."""


def events(log: Path, writer: subprocess.Popen[Any]) -> Iterator[dict[str, Any]]:
    """Each line as it comes, until the writer has ended and all is read."""
    while not log.exists():
        if writer.poll() is not None:
            return
        time.sleep(_LOOK_EVERY_S)
    with log.open() as lines:
        rest = ""
        while True:
            ended = writer.poll() is not None
            rest += lines.readline()
            if rest.endswith("\n"):
                yield json.loads(rest)
                rest = ""
            elif ended:
                return
            else:
                time.sleep(_LOOK_EVERY_S)
