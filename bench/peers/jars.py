"""The contestants' own jars: fetched only when they are asked for, each checked by its hash.

A list is ``NAME.xml`` with ``NAME.lock`` beside it, as ``jars/`` has them for binlogd itself; its
jars lie in ``var/peers/NAME/PART``.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from actors.runtime.jars import JarList, JarsError, fetch, write_lock
from actors.runtime.java import CHECKOUT

HERE = Path(__file__).parent
PEERS = CHECKOUT / "var" / "peers"
FLINK_LIBRARIES = "flink-libraries"
"""The folder of Flink's own jars, which are not in a list: they come from PyPI."""


def lists() -> list[str]:
    """The names of the lists there are."""
    return sorted(path.stem for path in HERE.glob("*.xml"))


def jar_list(name: str) -> JarList:
    """A list by its name."""
    return JarList(HERE / f"{name}.xml", HERE / f"{name}.lock")


def fetch_peer(name: str, peers: Path = PEERS) -> bool:
    """Bring the jars of a list; False when they were there already. Raises JarsError."""
    peers.mkdir(parents=True, exist_ok=True)
    return fetch(peers / name, jar_list(name))


def classpath(folder: Path) -> str:
    """Give all jars of a folder as a class path; raises JarsError where there are none."""
    jars = sorted(folder.glob("*.jar"))
    if not jars:
        raise JarsError(f"no jars in {folder}: run `python -m bench.peers.jars fetch`")
    return os.pathsep.join(str(jar) for jar in jars)


def main() -> int:
    """``python -m bench.peers.jars fetch NAME...``, or ``lock NAME...`` after a change of one."""
    parser = argparse.ArgumentParser(prog="python -m bench.peers.jars", description=__doc__)
    parser.add_argument("action", choices=["fetch", "lock"])
    parser.add_argument("names", nargs="+", choices=lists(), metavar="NAME")
    options = parser.parse_args()
    try:
        for name in options.names:
            if options.action == "lock":
                print(f"{name}: {write_lock(jar_list(name))} jars locked")
            elif fetch_peer(name):
                print(f"{name}: jars fetched")
    except JarsError as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
