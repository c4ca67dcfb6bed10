"""Which configuration file a command reads: the option's, or the first of three others."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

ENVIRONMENT = "BINLOGD_CONFIG"
"""The variable that names the file where no option does."""

HERE = Path("config.toml")
OF_THE_MACHINE = Path("/etc/binlogd/config.toml")
"""The file of the packaged service."""


class NoConfig(Exception):
    """No option names a configuration, and none of the usual places has one: one line."""


class ConfigFile(NamedTuple):
    """The file, and why it is this one; empty where the command's option names it."""

    path: Path
    why: str = ""

    def __str__(self) -> str:
        return f"configuration: {self.path} ({self.why})"


def config_file(
    option: Path | None,
    environment: Mapping[str, str] = os.environ,
    places: tuple[Path, Path] = (HERE, OF_THE_MACHINE),
) -> ConfigFile:
    """The option's; else that of ``BINLOGD_CONFIG``; else the first place that has one.

    A file that is named is taken whether it is there or not: its reader says what is wrong with it.
    Raises NoConfig.
    """
    if option is not None:
        return ConfigFile(option)
    if named := environment.get(ENVIRONMENT):
        return ConfigFile(Path(named), f"named by {ENVIRONMENT}")
    here, machine = places
    if os.path.lexists(here):
        return ConfigFile(here, "in this folder")
    if os.path.lexists(machine):
        return ConfigFile(machine, f"no --config, no {ENVIRONMENT}, no {here} in this folder")
    raise NoConfig(
        f"no configuration: --config names none, {ENVIRONMENT} is not set, and there is neither "
        f"{here} here nor {machine}; `binlogd init` writes one"
    )
