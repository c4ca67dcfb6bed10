"""Bounds for Spark's thread pools, derived from how many writers there are. Pure.

Two pools that Spark's adaptive execution fills begin a thread for each task until they have
1,024, whether or not others are idle, and end it after a minute without one.
"""

from __future__ import annotations

from collections.abc import Mapping

POOLS = ("shuffleExchange", "resultQueryStage")
EACH_WRITER = 4
"""Tasks of one statement at the same time: its exchanges, or its result."""
SUBQUERIES = "spark.sql.subquery.maxThreadThreshold"
_AT_ONCE = 16
"""Subqueries that Spark runs at the same time by itself."""


def thread_bounds(writers: int, conf: Mapping[str, str]) -> dict[str, str]:
    """The settings, beside those of the user, who wins.

    A task may wait for a subquery, and a subquery's own tasks go to the same pools: with too few
    threads all would wait for one another for ever. So there is room for all subqueries beside the
    statements, and where ``conf`` bounds those in its own way, Spark's bounds stay.
    """
    if SUBQUERIES in conf:
        return {}
    threads = str(_AT_ONCE + EACH_WRITER * writers)
    return {f"spark.sql.{pool}.maxThreadThreshold": threads for pool in POOLS}
