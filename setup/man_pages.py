"""Writes a man page for each command, from what its ``--help`` says, and shell completion.

``python setup/man_pages.py FOLDER``: ``man/binlogd.1``, ``man/binlogd-tables-rebuild.1`` and so on;
``completion/bash/binlogd``, ``zsh/_binlogd`` and ``fish/binlogd.fish``: the names by which shells
look for them. The same source gives the same files.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import binlogd
import typer.main

STATUS = (
    ("0", "done; of run: everything in hand is written and committed"),
    ("1", "a data error, damage, or a difference that was looked for"),
    ("2", "it could not start, or was refused: nothing was changed"),
    ("3", "no daemon runs there"),
    ("4", "of status: it runs, and somebody has to act"),
    ("70", "a crash: start it again, replay is harmless"),
    ("75", "the drain did not end in time: nothing is lost"),
    ("130", "a second signal"),
)
SHELLS = {"bash": "binlogd", "zsh": "_binlogd", "fish": "binlogd.fish"}
"""Each with the name of its file."""


def root() -> Any:
    """The whole command line."""
    binlogd.use_code()
    from daemon.cli.__main__ import app

    return typer.main.get_command(app)


def walk(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command and group with its words, the outermost first."""
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from walk(inner, (*path, name))


def page(path: tuple[str, ...], command: Any, version: str) -> str:
    """The page of one command or group, as roff."""
    name, words = "-".join(("binlogd", *path)), " ".join(("binlogd", *path))
    summary, _, rest = (command.help or "").partition("\n\n")
    context = command.make_context(words, [], resilient_parsing=True)
    usage = " ".join(command.collect_usage_pieces(context))
    lines = [
        f'.TH {_text(name).upper()} 1 "" "binlogd {version}" "User Commands"',
        ".SH NAME", f"{_text(name)} \\- {_text(_one(summary).rstrip('.'))}",
        ".SH SYNOPSIS", f".B {_text(words)}", _text(usage),
        ".SH DESCRIPTION", _text(_one(summary)),
    ]  # fmt: skip
    if rest:
        lines += [".PP", _text(_one(rest))]
    for title, kind in (("ARGUMENTS", "argument"), ("OPTIONS", "option")):
        found = [p for p in command.get_params(context) if p.param_type_name == kind]
        lines += [f".SH {title}"] if found else []
        for param in found:
            lines += _param(param)
    lines += _commands(path, command)
    if command.epilog:
        example = command.epilog.removeprefix("Example: ")
        lines += [".SH EXAMPLE", ".EX", _text(example), ".EE"]
    if not path:
        lines += [".SH EXIT STATUS"]
        for status, meaning in STATUS:
            lines += [".TP", f".B {status}", _text(meaning)]
    else:
        lines += [".SH SEE ALSO", ".BR binlogd (1)"]
    return "\n".join(lines) + "\n"


def _param(param: Any) -> list[str]:
    names = ", ".join((*param.opts, *param.secondary_opts))
    if param.param_type_name == "argument":
        names = param.metavar or param.name.upper()
    elif not param.is_flag:
        names += f" {param.metavar or param.name.upper()}"
    return [".TP", f".B {_text(names)}", _text(_one(getattr(param, "help", None) or ""))]


def _commands(path: tuple[str, ...], command: Any) -> list[str]:
    inside = getattr(command, "commands", {})
    lines = [".SH COMMANDS"] if inside else []
    for name, inner in inside.items():
        summary = _one((inner.help or "").partition("\n\n")[0])
        page_name = _text("-".join(("binlogd", *path, name)))
        lines += [".TP", f".BR {page_name} (1)", _text(summary)]
    return lines


def _one(text: str) -> str:
    return " ".join(text.split())


def _text(text: str) -> str:
    """Text as roff reads it: no sign of it is a request or an escape."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{text}" if text[:1] in (".", "'") else text


def completion(shell: str) -> str:
    """What a shell reads to complete binlogd's words."""
    call = "import sys; sys.argv[0] = 'binlogd'; from binlogd import main; main()"
    ran = subprocess.run(
        [sys.executable, "-c", call], env=os.environ | {"_BINLOGD_COMPLETE": f"source_{shell}"},
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    text = ran.stdout.lstrip("\n")
    # zsh runs the file as the function itself at the first completion.
    return text.rstrip("\n") + '\n_binlogd_completion "$@"\n' if shell == "zsh" else text


def write_man_pages(folder: Path) -> list[Path]:
    """Write them all; gives the files."""
    version = metadata.version("binlogd")
    made = []
    for path, command in walk(root()):
        made.append(folder / f"{'-'.join(('binlogd', *path))}.1")
        made[-1].write_text(page(path, command, version), encoding="utf-8")
    return made


def main() -> None:
    """``man_pages.py FOLDER``."""
    folder = Path(sys.argv[1])
    (folder / "man").mkdir(parents=True, exist_ok=True)
    write_man_pages(folder / "man")
    for shell, name in SHELLS.items():
        (folder / "completion" / shell).mkdir(parents=True, exist_ok=True)
        (folder / "completion" / shell / name).write_text(completion(shell), encoding="utf-8")


if __name__ == "__main__":
    main()
