"""Net rows as the simulation has them, and the fold of a few lines: dicts, no Arrow.

What it stands for (``changes.routes.fold``) has tests of its own; here thousands of seeds get
through.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

Key = tuple[Any, ...]
Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Change:
    """What became of one key. ``values`` None: it is gone. ``old``: the key that it had before."""

    key: Key
    values: Values | None
    old: Key | None = None
    position: str | None = None


@dataclass(frozen=True, slots=True)
class Net:
    """What a batch makes of a key. ``values`` None: it is gone.

    What they lack, the stored row of the key ``base`` tells, as it was before the batch; without
    ``base`` it is null.
    """

    key: Key
    values: Values | None
    base: Key | None
    position: str | None = None


Nets = dict[Key, Net]


def fold(before: Nets, changes: Iterable[Change]) -> Nets:
    """The net rows of a batch's rows and of changes after them, in lane order."""
    nets = dict(before)
    for change in changes:
        key, old = change.key, change.old
        if change.values is None:
            nets[key] = Net(key, None, None)
            continue
        had = nets.get(key if old is None else old)
        if had is None:
            had = Net(key, {}, key if old is None else old)
        if old is not None:
            nets[old] = Net(old, None, None)
        nets[key] = Net(key, {**(had.values or {}), **change.values}, had.base)
    return nets


def follow(before: Nets, after: Nets) -> Nets:
    """The net rows of two batches, one after the other."""
    nets = dict(before)
    for key, net in after.items():
        had = None if net.base is None else before.get(net.base)
        if had is not None and net.values is not None:
            net = replace(net, values={**(had.values or {}), **net.values}, base=had.base)
        nets[key] = net
    return nets


def newest(changes: Iterable[Net]) -> Nets:
    """The net rows of rows that carry positions: the last of each key in the source's order."""
    nets: Nets = {}
    for net in sorted(changes, key=lambda net: net.position or ""):
        had = nets.get(net.key)
        if had is not None and had.values is not None and net.values is not None:
            net = replace(net, values={**had.values, **net.values})
        nets[net.key] = net
    return nets
