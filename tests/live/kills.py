"""Which program is killed behind which step: by a seed, so that it can be had again. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from random import Random


class Victim(Enum):
    """Who gets a ``kill -9`` and is started again, with the data that it has."""

    DAEMON = "binlogd"
    READERS = "the readers"
    DATABASES = "the databases"
    REGISTRY = "the schema registry"


HANDS = (Victim.READERS, Victim.READERS, Victim.DAEMON)
"""Who has a log in hand. binlogd's end is that of its worker, and takes longer to be over."""


def handovers(
    seed: int, steps: int, every: int, hands: Sequence[Victim] = HANDS
) -> Mapping[int, Victim]:
    """Two in each stretch between checkpoints, behind steps that are none's last."""
    rng = Random(f"handovers {seed}")
    return {
        step: rng.choice(hands)
        for start in range(0, steps, every)
        if (able := range(start + 1, min(start + every, steps)))
        for step in rng.sample(able, min(2, len(able)))
    }


def plan(seed: int, steps: int, registry: bool = False) -> Mapping[int, Victim]:
    """Each victim once, in any order, behind a step that is neither the first nor the last.
    ``registry``: whether there is one."""
    rng = Random(f"kills {seed}")
    there = [victim for victim in Victim if registry or victim is not Victim.REGISTRY]
    victims = rng.sample(there, len(there))
    return dict(zip(rng.sample(range(2, steps), len(victims)), victims, strict=True))
