"""The state directory that a configuration file names, without reading what else is in the file."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path

from daemon.config.interpolation import Lookup, interpolate

DEFAULT = "var/state"
"""Where a file names none. Relative paths count from the file's folder."""


def state_folder(path: Path, environment: Mapping[str, str] = os.environ) -> Path | None:
    """``daemon.state_dir`` of a file; None where the file, or that setting, can't be used.

    Who only asks the running daemon needs no more of the file, and no libraries to check it.
    Reading all of it says what is wrong.
    """
    try:
        section = tomllib.loads(path.read_text(encoding="utf-8")).get("daemon", {})
    except (OSError, ValueError):  # also of bytes that are no text, and of text that is no TOML
        return None
    named = section.get("state_dir", DEFAULT) if isinstance(section, dict) else None
    lookup = Lookup(environment, path.resolve().parent, True, {}, [])
    found = interpolate(named, lookup, "daemon.state_dir")
    if lookup.problems or not isinstance(found, str):
        return None
    return path.resolve().parent / found
