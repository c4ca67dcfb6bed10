"""The jars of servers for tests and the demo (``jars/servers``): not among binlogd's own.

``python -m demo.servers.jars fetch [NAME...]`` brings them to ``var/lake``; ``lock``, after a
change of a list, writes their hashes.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from actors.runtime.jars import LISTS, JarList, JarsError, fetch, ivy_jar, write_lock
from actors.runtime.java import VAR
from actors.runtime.programs import ProgramMissing

HERE = LISTS / "servers"
FOLDER = VAR / "lake"


def jar_list(name: str) -> JarList:
    """A list by its name."""
    return JarList(HERE / f"{name}.xml", HERE / f"{name}.lock")


def bring(name: str) -> bool:
    """Fetch a server's jars; False where they were there already. Raises JarsError."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    return fetch(FOLDER / name, jar_list(name))


def server_jars(name: str) -> list[Path]:
    """Give a server's jars; raises ProgramMissing where they were not fetched."""
    jars = sorted((FOLDER / name).glob("*/*.jar"))
    if not jars:
        command = f"python -m demo.servers.jars fetch {name}"
        raise ProgramMissing(name, f"its jars are not there: run `{command}`")
    return jars


def pyspark_jars() -> Path:
    """Give the folder of pyspark's own jars: Hive's and Hadoop's are among them."""
    return ivy_jar().parent


def main() -> int:
    """Do it; each new set of jars is a line."""
    parser = argparse.ArgumentParser(prog="python -m demo.servers.jars", description=__doc__)
    parser.add_argument("action", choices=["fetch", "lock"])
    parser.add_argument("names", nargs="*", metavar="NAME", help="of servers; all without")
    options = parser.parse_args()
    try:
        for name in options.names or sorted(path.stem for path in HERE.glob("*.xml")):
            if options.action == "lock":
                print(f"{name}: {write_lock(jar_list(name))} jars locked")
            elif bring(name):
                print(f"setup: jars of the server {name} in {FOLDER / name}")
    except JarsError as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
