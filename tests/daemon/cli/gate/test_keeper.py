"""One gate: its clock is set back, its configuration changes, much closes in one look."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from daemon.cli.gate.keeper import SHOW_EVERY_MS, GateKeeper
from daemon.config.file import load
from daemon.state.gate_store import DamagedGate, GateStore
from demo.broker import DevBroker
from offsets import gate_record as rule
from offsets.gate_record import GateFinding, iso
from tests.daemon.cli.counts.debezium_log import MINUTE
from tests.daemon.cli.gate.gate_world import GateWorld

YEAR_MS = 366 * 86_400_000


class Ahead:
    """A gate whose first partition has not ended. ``now_ms``: what its clock says."""

    def __init__(self, folder: Path) -> None:
        self._folder, self.now_ms = folder, 2 * YEAR_MS
        self.store = GateStore(folder / "state")

    def keeper(self, **keys: Any) -> GateKeeper:
        all_ = {"tables": ["a.shop.orders"], "every": "1d", **keys}
        config = self._folder / "binlogd.toml"
        config.write_text(
            f'[daemon]\nstate_dir = "{self._folder}/state"\n[kafka]\n"bootstrap.servers" = "x:1"\n'
            f'[sink.a]\nkind = "sqlite"\npath = "{self._folder}/a.db"\n[pipeline.a]\n'
            'topics = ["a"]\nformat = "canal-json"\ninclude = ["*"]\n'
            'target = "a.{database}.{table}"\n[gates.g]\n'
            + "\n".join(f"{key} = {json.dumps(value)}" for key, value in all_.items())
        )
        return GateKeeper(load(config), "g", lambda _: None, lambda: self.now_ms)

    def first(self) -> str:
        found = self.store.record("g")
        assert found is not None
        assert found.next_ms == found.first_ms
        return iso(found.first_ms)

    def looked_ms(self) -> int:
        found = self.store.look("g")
        assert found is not None
        return found.at_ms


@pytest.fixture
def ahead(tmp_path: Path) -> Ahead:
    return Ahead(tmp_path)


def test_a_gate_that_has_closed_nothing_begins_where_from_says_now(ahead: Ahead) -> None:
    """Somebody has mended a year. Without ``from`` it stays where it began."""
    for begin in ("2030-01-01T00:00:00Z", "2020-01-01T00:00:00Z", "2019-05-01T00:00:00Z"):
        assert ahead.keeper(**{"from": begin}).look()
        assert ahead.first() == begin
    assert ahead.keeper().look()
    assert ahead.first() == "2019-05-01T00:00:00Z"


@pytest.mark.parametrize(
    "numbers", [{"length_ms": 0}, {"next_ms": 10**18}, {"next_ms": -1}, {"first_ms": -1}]
)
def test_numbers_that_are_no_times_are_a_damaged_record(ahead: Ahead, numbers: Any) -> None:
    """The daemon shows that, as any other damage."""
    assert ahead.keeper().look()
    (path,) = ahead.store.folder.glob("*.json")
    document = json.loads(path.read_text())
    document["gate"] |= numbers
    path.write_text(json.dumps(document))
    assert not ahead.keeper().look()
    with pytest.raises(DamagedGate, match="damaged"):
        ahead.store.record("g")


def test_a_look_is_shown_by_a_clock_that_was_set_back(ahead: Ahead) -> None:
    """Else nobody would seem to look until that time comes again."""
    keeper = ahead.keeper(**{"from": "2030-01-01T00:00:00Z"})
    for now_ms in (3 * YEAR_MS, 2 * YEAR_MS):
        ahead.now_ms = now_ms
        keeper.look()
        assert ahead.looked_ms() == now_ms


def test_others_see_that_somebody_looks_while_much_closes(
    tmp_path: Path, store_broker: DevBroker
) -> None:
    world = GateWorld(tmp_path, store_broker)
    world.gate()
    world.written(4)
    store, seen, now_ms = GateStore(world.state), list[int](), [(MINUTE + 60) * 60_000]

    def clock() -> int:
        now_ms[0] += SHOW_EVERY_MS
        return now_ms[0]

    def tell(line: str) -> None:
        look = store.look("g")
        if "closed, version" in line and look is not None:
            seen.append(look.at_ms)

    GateKeeper(load(world.config), "g", tell, clock).look()
    assert len({*seen}) == len(seen) == len(world.recorded().closed) > 1


class LongLook(GateKeeper):
    """A look that goes on while the test looks at what is shown of it."""

    def due_is_asked(self, act: Callable[[], None]) -> None:
        self._act = act

    def _due(self) -> list[int]:
        self._act()
        return super()._due()


def test_a_look_that_takes_long_is_shown_as_such(ahead: Ahead) -> None:
    """As one that counts a day of the log: somebody looks. A short one is not."""
    ahead.keeper(**{"from": "1971-01-01T00:00:00Z"})
    config = load(ahead.store.folder.parent.parent / "binlogd.toml")
    keeper = LongLook(config, "g", lambda _: None, lambda: ahead.now_ms)
    begun, shown = ahead.now_ms, list[tuple[int, int | None]]()

    def later() -> None:
        for seconds in (10, 900, 60):
            ahead.now_ms += seconds * 1000
            keeper.show_looking()
            found = ahead.store.look("g")
            if found is not None:
                shown.append(((found.at_ms - begun) // 1000, found.looking_ms))

    keeper.due_is_asked(later)
    keeper.look()
    assert shown[:2] == [(910, begun), (970, begun)]
    keeper.show_looking()
    found = ahead.store.look("g")
    assert found is not None
    assert (found.at_ms, found.looking_ms) == (ahead.now_ms, None)


def test_nothing_closes_while_a_way_has_too_much_to_take(
    ahead: Ahead, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No notification is lost, and the file does not grow without bound."""
    keeper = ahead.keeper(**{"from": "1971-01-01T00:00:00Z"}, webhook="http://127.0.0.1:1/x")
    monkeypatch.setattr(rule, "full", partial(rule.full, most=2))
    keeper.look()
    record = ahead.store.record("g")
    assert record is not None
    for _ in range(2):
        begin = record.next_ms
        record = rule.closed(record, begin, begin, GateFinding(("a.shop.orders",)), ("webhook",))
    ahead.store.save(record)
    keeper = ahead.keeper(**{"from": "1971-01-01T00:00:00Z"}, webhook="http://127.0.0.1:1/x")
    assert not keeper.look()
    found = ahead.store.look("g")
    assert found is not None
    assert found.shut["a.shop.orders"] == (
        "10,000 notifications wait for webhook: nothing closes until it takes some"
    )
    keeper.taken("webhook", [keeper.pending("webhook")[0].id])
    keeper.look()
    found = ahead.store.look("g")
    assert found is not None
    assert "notifications wait" not in found.shut["a.shop.orders"]
