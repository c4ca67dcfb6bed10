"""Runs a Java program of a contestant's: compiled from ``java/`` by a compiler that is a jar."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from actors.runtime.java import find_java
from bench.compare.dying import die_with_parent

SOURCES = Path(__file__).parent / "java"
_COMPILED_WITHIN_S = 120.0
"""A class takes 2 s; a busy machine may need ten times as long."""


class JavaFailed(Exception):
    """A program that doesn't compile or that failed: what it said last."""


def compile_class(
    name: str, compiler: str, classpath: str, into: Path, sources: Path = SOURCES
) -> None:
    """Compile a class of a folder of sources into another one; raises JavaFailed.

    A Java runtime without a compiler is enough: Eclipse's, the class path ``compiler``, does it.
    """
    done = subprocess.run(
        [find_java().java, "-XX:TieredStopAtLevel=1", "-cp", compiler,
         "org.eclipse.jdt.internal.compiler.batch.Main", "--release", "17", "-proc:none",
         "-nowarn", "-classpath", classpath, "-d", into, sources / f"{name}.java"],
        capture_output=True, text=True, check=False, timeout=_COMPILED_WITHIN_S,
    )  # fmt: skip
    if done.returncode:
        raise JavaFailed(f"{name}.java: {(done.stdout + done.stderr).strip()}")


def run_class(
    name: str, classpath: str, arguments: Sequence[object], log: Path, options: Sequence[str] = ()
) -> Iterator[str]:
    """Run a class; gives what it prints, line by line; raises JavaFailed where it fails.

    What it says on standard error goes to ``log``, in whose folder it unpacks its libraries.
    """
    options = [f"-Djava.io.tmpdir={log.parent.absolute()}", *options]
    command = [str(find_java().java), *options, "-cp", classpath, name, *map(str, arguments)]
    with (
        log.open("w") as out,
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=out,
            text=True,
            preexec_fn=die_with_parent,
        ) as process,
    ):
        assert process.stdout is not None
        for line in process.stdout:
            yield line.strip()
    if process.returncode:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-15:])
        raise JavaFailed(f"{name} ended with code {process.returncode}: {tail}")
