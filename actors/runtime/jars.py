"""The jars beside pyspark's own: fetched by the Ivy that pyspark ships, each checked by its hash.

``jars/ivy.xml`` lists them, ``jars/jars.lock`` says what each must be (``sha256sum -c`` reads it
too). They lie in ``var/jars`` (of a wheel: ``share/binlogd/jars`` in its environment), or where
BINLOGD_JARS says. Extras, which only some configurations need, have a list and a lock each in
``jars/extras``; they lie beside those, in ``jars-extras/NAME``.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from actors.runtime.java import CHECKOUT, SETUP, VAR, JavaMissing, find_java, setup_command
from actors.runtime.truststore import PASSWORD, write_truststore

LISTS = CHECKOUT / "jars"
LOCK = LISTS / "jars.lock"
EXTRAS = LISTS / "extras"
_FETCH_WITHIN_S = 900.0
"""105 MB in 46 requests: 20 s on a fast line; on one that needs longer than this, try again."""


class JarsError(Exception):
    """Jars that are missing or not what the lock says, in one line."""


@dataclass(frozen=True, slots=True)
class JarList:
    """Which jars there are to be: Ivy's description of them, and the lock with their hashes."""

    ivy: Path
    lock: Path


OWN = JarList(LISTS / "ivy.xml", LOCK)
"""The jars that binlogd itself and its dev broker need."""


def lake_jars() -> list[Path]:
    """Give the jars for Spark's class path (Iceberg, SQLite); raises JarsError."""
    return own_jars("lake")


def extra_jars(names: Iterable[str]) -> list[Path]:
    """Give the jars of these extras for Spark's class path; raises JarsError naming all missing."""
    found = {name: sorted((extras_folder() / name).glob("*/*.jar")) for name in names}
    missing = " ".join(name for name, jars in found.items() if not jars)
    if missing:
        raise JarsError(f"needs the jars of {missing}: run `{setup_command(missing)}`")
    return [jar for jars in found.values() for jar in jars]


def local_jar() -> Path:
    """Give the jar of the local file system that starts no process; raises JarsError."""
    return own_jars("local")[0]


def own_jars(part: str) -> list[Path]:
    """Give the jars of a part of our own list: lake, local, kafka; raises JarsError."""
    folder = jars_folder() / part
    jars = sorted(folder.glob("*.jar"))
    if not jars:
        raise JarsError(f"no jars in {folder}: run `{SETUP}` (or set BINLOGD_JARS)")
    return jars


def jars_folder() -> Path:
    """Where the jars are: BINLOGD_JARS, else what set-up brought."""
    return Path(os.environ.get("BINLOGD_JARS") or VAR / "jars")


def extras_folder() -> Path:
    """Where extras are: beside the other jars, jars-extras."""
    folder = jars_folder()
    return folder.with_name(folder.name + "-extras")


def extra_list(name: str) -> JarList:
    """The list of an extra. Raises JarsError."""
    found = JarList(EXTRAS / f"{name}.xml", EXTRAS / f"{name}.lock")
    if not found.ivy.is_file():
        known = ", ".join(sorted(path.stem for path in EXTRAS.glob("*.xml")))
        raise JarsError(f"extra jars: {name} is none of {known}")
    return found


def fetch_extra(name: str, source: Path | None = None) -> bool:
    """Bring the jars of an extra to where they are looked for; see ``fetch``."""
    jars = extra_list(name)
    extras_folder().mkdir(parents=True, exist_ok=True)
    return fetch(extras_folder() / name, jars, source)


def read_lock(lock: Path = LOCK) -> dict[str, str]:
    """Read a lock file: the path of each jar (``lake/name.jar``) to its sha256."""
    entries = {}
    for line in lock.read_text().splitlines():
        digest, _, path = line.partition("  ")
        if len(digest) != 64 or not path:
            raise JarsError(f"{lock}: not a line of sha256sum: {line!r}")
        entries[path] = digest
    return entries


def verify(folder: Path, lock: Path = LOCK) -> int:
    """Check that a folder holds just the jars of the lock, unchanged; give how many those are.

    Raises JarsError.
    """
    wanted, found = read_lock(lock), digests(folder)
    wrong = [f"{path} is missing" for path in sorted(wanted.keys() - found.keys())]
    wrong += [f"{path} is not in the lock" for path in sorted(found.keys() - wanted.keys())]
    wrong += [
        f"{path} has sha256 {found[path]}, not {wanted[path]}"
        for path in sorted(wanted.keys() & found.keys())
        if found[path] != wanted[path]
    ]
    if wrong:
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        raise JarsError(f"jars in {folder} don't match {lock.name}: {wrong[0]}{more}")
    return len(found)


def digests(folder: Path) -> dict[str, str]:
    """Hash every jar, and every archive of jars, under a folder."""
    jars = sorted([*folder.glob("*/*.jar"), *folder.glob("*/*.tar.gz")])
    return {jar.relative_to(folder).as_posix(): _digest(jar) for jar in jars}


def _digest(jar: Path) -> str:
    with jar.open("rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()


def fetch(destination: Path, jars: JarList = OWN, source: Path | None = None) -> bool:
    """Bring the jars of a list into a folder; False when they were there already.

    ``source``: a folder that they are copied from, in which they may lie anywhere; otherwise they
    come from Ivy's repository.

    They are fetched beside it and moved in when every one is right, so that a run that was cut
    short or a wrong download leaves nothing that looks like jars. Raises JarsError.
    """
    destination = destination.absolute()
    if destination.is_dir() and _matches(destination, jars.lock):
        return False
    cache = destination.with_name(destination.name + ".ivy")
    fresh = destination.with_name(destination.name + ".new")
    try:
        if source is None:
            _run_ivy(jars.ivy, cache, fresh)
        else:
            _copy(source, fresh, jars.lock)
        verify(fresh, jars.lock)
    except JarsError:
        # What was fetched wrongly once must not be found in the cache the next time.
        if (cache / "done").exists():
            shutil.rmtree(cache)
        raise
    shutil.rmtree(destination, ignore_errors=True)
    fresh.replace(destination)
    shutil.rmtree(cache, ignore_errors=True)
    return True


def _matches(folder: Path, lock: Path) -> bool:
    try:
        verify(folder, lock)
    except JarsError:
        return False
    return True


def _copy(source: Path, fresh: Path, lock: Path) -> None:
    """Copy the jars of a lock from below a folder, each found by its hash."""
    shutil.rmtree(fresh, ignore_errors=True)
    there = {_digest(jar): jar for jar in sorted(source.rglob("*.jar"))}
    wanted = read_lock(lock)
    if missing := [path for path, digest in wanted.items() if digest not in there]:
        more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
        raise JarsError(f"{source} has no jar with the hash of {missing[0]} in {lock.name}{more}")
    for path, digest in wanted.items():
        (fresh / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(there[digest], fresh / path)


def _run_ivy(ivy: Path, cache: Path, fresh: Path) -> None:
    """Resolve and download by Ivy; what it says goes to a log in its cache folder."""
    shutil.rmtree(fresh, ignore_errors=True)
    cache.mkdir(parents=True, exist_ok=True)
    try:
        java = find_java().java
    except JavaMissing as problem:
        raise JarsError(str(problem)) from problem
    trusted = cache / "authorities.jks"
    trust = [
        f"-Djavax.net.ssl.trustStore={trusted}",
        f"-Djavax.net.ssl.trustStorePassword={PASSWORD}",
    ]
    command: list[str | Path] = [
        java, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", f"-Divy.default.ivy.user.dir={cache}",
        *(trust if write_truststore(trusted) else []), "-jar", ivy_jar(),
        "-settings", LISTS / "ivysettings.xml", "-cache", cache / "cache",
        "-ivy", ivy, "-retrieve", f"{fresh}/[conf]/[artifact]-[revision].[ext]",
    ]  # fmt: skip
    log = cache / "ivy.log"
    with log.open("w") as out:
        try:
            code = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                timeout=_FETCH_WITHIN_S,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired:
            raise JarsError(f"jars not fetched in {_FETCH_WITHIN_S:.0f} s: see {log}") from None
    if code:
        raise JarsError(
            f"jars could not be fetched, is there a network? {_first_problem(log)} ({log})"
        )
    (cache / "done").touch()


def _first_problem(log: Path) -> str:
    """The first line in which Ivy names what it couldn't get."""
    for line in log.read_text(errors="replace").splitlines():
        text = line.strip(" :\t")
        if any(word in text for word in ("Exception", "not found", "FAILED", "Couldn't", "ERROR")):
            return text
    return "Ivy gave no reason"


def ivy_jar() -> Path:
    """Find the Ivy that pyspark ships; raises JarsError."""
    package = importlib.util.find_spec("pyspark")
    if package is None or package.origin is None:
        raise JarsError(
            "jars are fetched by the Ivy that pyspark brings, and pyspark is not installed: name a "
            "folder that has them (`binlogd setup --from FOLDER`), or install binlogd instead of "
            "binlogd-sql"
        )
    folder = Path(package.origin).parent / "jars"
    jars = sorted(folder.glob("ivy-[0-9]*.jar"))
    if len(jars) != 1:
        raise JarsError(f"{len(jars)} Ivy jars in {folder}, expected one: is pyspark whole?")
    return jars[0]


def write_lock(jars: JarList = OWN) -> int:
    """Fetch what a list names and write the hashes as its new lock; gives their number."""
    folder = VAR / "jars-lock"
    fresh = folder / "jars"
    _run_ivy(jars.ivy, folder, fresh)
    lines = [f"{digest}  {path}\n" for path, digest in digests(fresh).items()]
    jars.lock.write_text("".join(lines))
    shutil.rmtree(folder)
    return len(lines)


def main() -> int:
    """``jars fetch [--dest DIR]``, ``jars extras NAME...``, or ``jars lock`` after a change of a
    list."""
    parser = argparse.ArgumentParser(prog="python -m actors.runtime.jars", description=__doc__)
    parser.add_argument("action", choices=["fetch", "extras", "lock"])
    parser.add_argument("names", nargs="*", metavar="NAME", help="of extras")
    parser.add_argument("--dest", type=Path, help="folder for the jars (default: var/jars)")
    options = parser.parse_args()
    try:
        if options.action == "lock":
            extras = [extra_list(path.stem) for path in sorted(EXTRAS.glob("*.xml"))]
            print(f"jars: {sum(map(write_lock, (OWN, *extras)))} locked")
        elif options.action == "extras":
            for name in options.names:
                if fetch_extra(name):
                    print(f"setup: jars of {name} in {extras_folder() / name}")
        else:
            fetch(options.dest or jars_folder())
    except JarsError as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
