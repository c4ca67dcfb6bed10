"""What a workload's tables must hold."""

from __future__ import annotations

import itertools
from array import array
from dataclasses import dataclass, field

from bench.compare.workloads import Workload, stream


@dataclass(slots=True)
class Expected:
    """What one table must hold: of each row its key and its version."""

    keys: array[int] = field(default_factory=lambda: array("q"))
    versions: array[int] = field(default_factory=lambda: array("q"))


def fold(workload: Workload, end: int) -> list[Expected]:
    """What each table must hold once all messages below ``end`` are applied.

    Upserted: the rows that live; of a preloaded table those that were touched. Appended: a row
    for each change, after it or, where it is deleted, before it.
    """
    expected = [Expected() for _ in range(workload.tables)]
    live: list[dict[int, int]] = [{} for _ in range(workload.tables)]
    for table, _, rows in itertools.islice(stream(workload), end):
        for key, before, after in rows:
            if workload.mode == "append":
                version = before if after is None else after
                assert version is not None
                expected[table].keys.append(key)
                expected[table].versions.append(version)
            elif after is None:
                del live[table][key]
            else:
                live[table][key] = after
    for one, rows_of in zip(expected, live, strict=True):
        one.keys.extend(rows_of.keys())
        one.versions.extend(rows_of.values())
    return expected
