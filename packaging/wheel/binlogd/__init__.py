"""binlogd as an installed package. In a wheel, the folder ``code`` beside it has the packages.

They have general names (``daemon``, ``actors``, …), and other projects install packages of the same
names: python-daemon's is ``daemon``. So site-packages gets one name of ours, and only a process
that runs binlogd has ``code`` on its path.
"""

from __future__ import annotations

import sys
from pathlib import Path

_HERE = Path(__file__).parent
CODE = _HERE / "code" if (_HERE / "code").is_dir() else _HERE.parents[2]
"""The folder with the packages: of the wheel, or the checkout of an editable installation."""


def use_code() -> None:
    """Put binlogd's packages first on this process's path. Its child processes take the path over
    from it."""
    if str(CODE) not in sys.path:
        sys.path.insert(0, str(CODE))


def installed_twice() -> bool:
    """Whether both distributions are in this environment: the files are those of the later one,
    and the removal of either takes them from the other."""
    there = [any(_HERE.parent.glob(f"{name}-*.dist-info")) for name in ("binlogd", "binlogd_sql")]
    return all(there)


def main() -> None:
    """The command ``binlogd``."""
    if installed_twice():
        print(
            f"binlogd: {_HERE.parent} has both binlogd and binlogd-sql, which are the same files: "
            "run `pip uninstall --yes binlogd binlogd-sql`, then install one of them",
            file=sys.stderr,
        )
        sys.exit(2)
    use_code()
    from daemon.cli.__main__ import main as command  # only now on the path

    command()
