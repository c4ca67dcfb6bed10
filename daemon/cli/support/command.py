"""``binlogd support-bundle``: writes the bundle."""

from __future__ import annotations

import io
import os
import tarfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from daemon.cli.base.options import ConfigOption, chosen_file, load_config, refuse
from daemon.cli.support.bundle import members
from daemon.config.file import ConfigError, load


def support_bundle(
    config: ConfigOption = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file that is written.")
    ] = None,
) -> None:
    """Write configuration, status, versions, positions and the last logs into one file.

    Without secrets; names of tables and errors are in it.
    """
    whole = True
    try:
        settings = load(chosen_file(config).path)
    except ConfigError:
        whole, settings = False, load_config(config, lenient=True)
    path = output or Path(f"binlogd-support-{datetime.now(UTC):%Y%m%d-%H%M%S}.tar.gz")
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(descriptor, "wb") as raw, tarfile.open(fileobj=raw, mode="w:gz") as bundle:
            for name, text in members(settings, whole):
                data = text.encode("utf-8", "backslashreplace")
                entry = tarfile.TarInfo(f"{path.name.removesuffix('.tar.gz')}/{name}")
                entry.size, entry.mtime, entry.mode = len(data), int(time.time()), 0o600
                bundle.addfile(entry, io.BytesIO(data))
                print(f"{name}: {len(data):,} bytes")
                if name == "problems.txt":
                    print(text, end="")
    except OSError as error:
        refuse(f"{path} can't be written: {error.strerror or error}")
    print(f"{path} is written. Look through it before you send it")
