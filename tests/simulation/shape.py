"""What a random stream is made of: each seed draws other features, so that each occurs often."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from changes.formats import AUTO
from changes.model.model import DdlPolicy, FormatOptions
from changes.model.registry import Registry
from changes.routes.shaping.shape import NO_SHAPE
from changes.routes.shaping.shape import Shape as RouteShape

POSITIONS = "tidb-commit-ts"


@dataclass(frozen=True, slots=True)
class Shape:
    """Features of a stream, and the configuration that they need.

    ``ddl``, ``bad`` and ``split`` are shares of all messages: DDL statements, records that can't
    be applied, messages that were cut into parts.
    """

    ddl: float = 0.0
    bad: float = 0.0
    split: float = 0.0
    several: float = 0.0
    """The share of messages that are packed into one with those behind them."""
    minimal: bool = False
    """Updates carry the key and what changed: MINIMAL row images."""
    leaves_out: bool = False
    """Statements give tables columns with a default, which inserts mostly leave out."""
    whole: Callable[[Mapping[str, str | None]], bool] | None = None
    """Of these, updates of ``v`` or of the key are whole all the same if their rows were so."""
    columns: tuple[str, ...] = ("v",)
    """Of each table at its beginning, beside the key."""
    moves: float = 0.2
    """The share of updated rows that change their key."""
    lanes: bool = False
    """A table's changes are in both partitions, and carry source positions."""
    keyed: int = 0
    """A table's changes are in so many partitions, each key in one (``tests.simulation.keyed``)."""
    auto: bool = False
    """The format is told from the messages: bad ones that come first wait for one that tells it."""
    registry: Registry | None = None
    """Records name schemas, which are kept there; staged by the real decoder alone."""
    quarantine: bool = False
    """A target that is refused, is quarantined. Without it nothing is ever refused."""
    quarantine_bytes: int = 1 << 20
    away: bool = False
    """One of the two sinks goes away and comes back, and fills its spill meanwhile."""
    reread_offsets: int = 20_000
    policy: DdlPolicy = field(default_factory=DdlPolicy)
    route: RouteShape = NO_SHAPE
    """What the route of the tables makes of their rows; staged by the real decoder alone."""

    @property
    def format(self) -> str:
        """What the pipeline's configuration says of its format."""
        if self.keyed:
            return "debezium-json"
        return AUTO if self.auto else "canal-json"

    @property
    def id(self) -> type[int] | type[str]:
        """What the sink has keys as."""
        return str if self.keyed else int

    @property
    def options(self) -> FormatOptions:
        """What the pipeline's format is told."""
        extra = {"positions": POSITIONS} if self.lanes else {}
        return FormatOptions(extra=extra, by_key=bool(self.keyed), registry=self.registry)


PLAIN = Shape()
"""Rows alone, as whole as can be."""


def random_shape(rng: random.Random) -> Shape:
    """Some features together, now and then all of them that go together.

    Rows with positions are whole, and of a table that keeps them no column but a new one is
    followed: so that shape has no MINIMAL images, and of DDL only what adds.
    """
    lanes = rng.random() < 0.25
    return Shape(
        ddl=rng.choice((0.0, 0.1, 0.2)),
        bad=rng.choice((0.0, 0.0, 0.1)),
        split=rng.choice((0.0, 0.0, 0.3)),
        several=rng.choice((0.0, 0.0, 0.3, 0.6)),
        minimal=not lanes and rng.random() < 0.4,
        lanes=lanes,
        quarantine=rng.random() < 0.5,
        quarantine_bytes=rng.choice((1500, 1 << 20, 1 << 20)),
        policy=DdlPolicy(
            drop_column=rng.choice(("keep", "follow")), drop_table=rng.choice(("keep", "follow"))
        ),
        away=rng.random() < 0.5,
        reread_offsets=rng.choice((1, 3, 20_000)),
    )
