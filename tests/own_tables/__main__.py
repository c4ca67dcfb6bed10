"""Trials for as long as is said: ``python -m tests.own_tables --kind mariadb --seconds 3600``.

Prints each seed whose table differs without a word, with its statements and rows, and at the end
how many tables there were, how many took rows, and how many refused some. Exit 1 where one differs.
"""

from __future__ import annotations

import argparse
import sys

from tests.own_tables.trials import trials


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kind", choices=("postgres", "mariadb", "mysql"), required=True)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    return trials(given.kind, given.seconds, given.first)


sys.exit(main())
