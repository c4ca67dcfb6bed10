"""A group of commands that imports a command when it is called (``table.py`` says why)."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

from daemon.cli.table import COMMANDS, GROUPS, Command


class _Listed(TyperCommand):
    """A command as a list shows it. What is called is the command itself."""

    def __init__(self, command: Command) -> None:
        super().__init__(command.words.rpartition(" ")[2], help=command.help)
        self._command = command

    def make_context(self, info_name: Any, args: Any, parent: Any = None, **extra: Any) -> Any:
        return _loaded(self._command).make_context(info_name, args, parent, **extra)


class _Inside(Mapping[str, Any]):
    """A group's commands and groups by name, each imported as it is looked up."""

    def __init__(self, group: str) -> None:
        self.listed: dict[str, Command] = {}
        for command in COMMANDS:
            of, _, name = command.words.rpartition(" ")
            if of == group:
                self.listed[name] = command
        self._groups = {} if group else GROUPS

    def __getitem__(self, name: str) -> Any:
        if name in self._groups:
            return LazyGroup(name=name, help=self._groups[name], no_args_is_help=True)
        return _loaded(self.listed[name])

    def __iter__(self) -> Iterator[str]:
        return iter((*self.listed, *self._groups))

    def __len__(self) -> int:
        return len(self.listed) + len(self._groups)


class LazyGroup(TyperGroup):
    """The whole command line, or one of its groups."""

    def __init__(self, *, name: str | None = None, **more: Any) -> None:
        super().__init__(name=name, **more | {"commands": None})
        self._inside = _Inside(name if name in GROUPS else "")
        self.commands = self._inside  # type: ignore[assignment]

    def list_commands(self, ctx: Any) -> list[str]:
        """The names alone."""
        return list(self._inside)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """One that lists itself, and imports itself when it is called."""
        listed = self._inside.listed.get(cmd_name)
        return self._inside.get(cmd_name) if listed is None else _Listed(listed)


def _loaded(command: Command) -> Any:
    """The command itself."""
    name = command.words.rpartition(" ")[2]
    if not command.place:
        with _quick_imports():
            app = import_module("daemon.cli.base.operations").operation_app(command.words)
        return get_group(app).commands[name]
    module, _, member = command.place.partition(":")
    with _quick_imports():
        found = getattr(import_module(module), member)
    if not isinstance(found, typer.Typer):
        app = typer.Typer()
        app.command(name, epilog=f"Example: binlogd {command.example}")(found)
        found = app
    return get_group(found).commands[name]


_PLUGINS = "PYDANTIC_DISABLE_PLUGINS"


@contextmanager
def _quick_imports() -> Iterator[None]:
    """A fifth of a light command's processor time less: imports leave no garbage to look for, and
    pydantic would read the metadata of every installed package for plugins, of which none is meant
    for our sections. Both are as before at the end: children have the caller's environment."""
    collects, plugins = gc.isenabled(), os.environ.get(_PLUGINS)
    gc.disable()
    os.environ[_PLUGINS] = "__all__"
    try:
        yield
    finally:
        if collects:
            gc.enable()
        if plugins is None:
            del os.environ[_PLUGINS]
        else:
            os.environ[_PLUGINS] = plugins
