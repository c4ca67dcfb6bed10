"""Why a table can't be replaced by another one that takes its name: asked before either is filled.

Rebuilds and loads end with that exchange, hours after their beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from actors.contract.ports import SinkUnavailable
from changes.model import TargetName
from daemon.config.config import Config
from daemon.databases.port import DatabaseAway
from daemon.operate.stand_in_names import new_table, put_aside
from daemon.sinks.kinds import sinks_of
from daemon.sinks.port import Exchanges

TRIED = "0123456789ab0"
"""In the place of a number that is still to come: as long as any."""


def unreplaceable(config: Config, targets: Iterable[TargetName]) -> dict[TargetName, str]:
    """By target the reasons, in one line. Raises DatabaseAway where a sink can't be asked now."""
    found, wanted = sinks_of(config), sorted(set(targets))
    refused: dict[TargetName, str] = {}
    for name in sorted({target.sink for target in wanted}):
        mine = [target for target in wanted if target.sink == name]
        if name not in found:
            refused |= dict.fromkeys(mine, f"the configuration has no sink {name!r}")
        elif (why := found[name].keeps_names()) is not None:
            refused |= dict.fromkeys(mine, f"sink {name}: {why}")
        else:
            refused |= _in_the_way(found[name].exchanges, mine)
    return refused


def _in_the_way(
    opened: Callable[[], Exchanges | None], targets: list[TargetName]
) -> dict[TargetName, str]:
    found: dict[TargetName, str] = {}
    sink: Exchanges | None = None
    try:
        if (sink := opened()) is None:
            return {}
        for target in targets:
            into = new_table(target, TRIED)
            lines = sink.in_the_way(target, into, put_aside(target, into))
            if lines:
                found[target] = "; ".join(lines)
    except SinkUnavailable as error:
        raise DatabaseAway(str(error)) from error
    finally:
        if sink is not None:
            sink.close()
    return found


def left_behind(config: Config, targets: Iterable[TargetName]) -> Iterator[str]:
    """What whoever made it has to make again once another table has the name of one of these: one
    line a target. Raises DatabaseAway."""
    found, opened = sinks_of(config), dict[str, Exchanges | None]()
    try:
        for target in targets:
            name = target.sink
            if name not in opened and name in found:
                opened[name] = found[name].exchanges()
            sink = opened.get(name)
            if sink is not None and (left := sink.left_behind(target)):
                yield f"{target}: to be made again afterwards: {', '.join(left)}"
    except SinkUnavailable as error:
        raise DatabaseAway(str(error)) from error
    finally:
        for one in opened.values():
            if one is not None:
                one.close()
