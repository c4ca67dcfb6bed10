"""Passwords of a command: from a file, the environment, or a prompt; never an argument."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import typer

from settings.secrets import SecretMissing, read_secret


class NoPassword(Exception):
    """There is none to be had: one line."""


class Password(NamedTuple):
    """``text`` is empty where the server asks for none. ``file``: its own, where it has one."""

    text: str
    file: Path | None = None


def password_of(
    who: str, file: Path | None, option: str, variable: str, environment: Mapping[str, str]
) -> Password:
    """A password. The prompt names ``who``. Raises NoPassword."""
    if file is not None:
        try:
            return Password(read_secret("file", str(file.absolute()), environment, file), file)
        except SecretMissing as error:
            raise NoPassword(f"{option}: {error}") from error
    if variable in environment:
        return Password(environment[variable])
    if not sys.stdin.isatty():
        raise NoPassword(
            f"no password of {who}: {option} FILE, or the environment variable {variable} (empty: "
            "none), as there is no terminal to ask on"
        )
    return Password(str(typer.prompt(f"Password of {who}", default="", hide_input=True,
                                     show_default=False, err=True)))  # fmt: skip


def from_environment(who: str, file: Path | None, option: str, variable: str) -> Password:
    """The same with this process's environment, from which it is removed: no child gets it."""
    found = password_of(who, file, option, variable, os.environ)
    os.environ.pop(variable, None)
    return found
