"""Several stores as one: their order, and what a fault leaves."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path

import pytest

from daemon.state.offset_file import FileStore, OffsetFile
from daemon.state.offset_stores import MemoryStore, StoreChain
from offsets.position import TopicPartition
from offsets.snapshot import Snapshot
from offsets.store import Loaded, StoreError
from tests.daemon.state.kits import batch

SOURCE = TopicPartition("t", 0)


class SlowStore(MemoryStore):
    """Confirms when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[Snapshot, Future[None]]] = []

    def set(self, batch: Snapshot) -> Future[None]:
        """Left to ``confirm``."""
        self.asked.append((batch, Future()))
        return self.asked[-1][1]

    def confirm(self) -> None:
        """Take the oldest batch."""
        asked, future = self.asked.pop(0)
        super().set(asked).result(0)
        future.set_result(None)


def test_the_next_store_waits_for_the_one_before() -> None:
    """A crash between the two leaves the first ahead, never behind."""
    slow, last = SlowStore(), MemoryStore()
    chain = StoreChain([slow, last])
    chain.start()
    done = chain.set(batch("t", {0: 5}))
    assert (last.get(), done.done()) == (Loaded(None), False)
    slow.confirm()
    assert (last.get().snapshot, done.done()) == (batch("t", {0: 5}), True)


def test_sets_under_way_keep_their_order_in_every_store() -> None:
    """The second is asked of the first store before the first is confirmed."""
    slow, last = SlowStore(), MemoryStore()
    chain = StoreChain([slow, last])
    chain.start()
    done = [chain.set(batch("t", {0: n})) for n in (5, 6)]
    slow.confirm()
    assert last.get().snapshot == batch("t", {0: 5})
    slow.confirm()
    assert last.get().snapshot == batch("t", {0: 6})
    assert [future.exception(0) for future in done] == [None, None]


def test_a_store_that_fails_keeps_the_later_ones_back(tmp_path: Path) -> None:
    """With the disk full the others must not get ahead of the file."""
    last = MemoryStore()
    chain = StoreChain([FileStore(tmp_path, "shop"), last])
    chain.start()
    (tmp_path / "shop.offsets.json.new").mkdir()
    with pytest.raises(StoreError, match=r"^file: "):
        chain.set(batch("t", {0: 5})).result(0)
    assert last.get() == Loaded(None)


def test_a_start_that_fails_leaves_nothing_open(tmp_path: Path) -> None:
    """The stores before it are stopped again."""
    first = MemoryStore()
    (tmp_path / "shop.offsets.json").mkdir()
    with pytest.raises(StoreError, match=r"^file: .*shop\.offsets\.json can't be read: "):
        StoreChain([first, FileStore(tmp_path, "shop")]).start()
    with pytest.raises(StoreError, match="is not open"):
        first.get()


def test_a_lost_file_is_made_up_for_by_the_next_store(tmp_path: Path) -> None:
    """A new machine: the later store recovers, and the file is written again from then on."""
    last = MemoryStore()
    chain = StoreChain([FileStore(tmp_path, "shop"), last])
    last.start()
    last.set(batch("t", {0: 5}))
    chain.start()
    assert chain.get().snapshot == batch("t", {0: 5})
    chain.set(batch("t", {0: 6})).result(0)
    assert OffsetFile(tmp_path, "shop").load().snapshot == batch("t", {0: 6})


def test_damage_is_told_by_whichever_store(tmp_path: Path) -> None:
    """And the other's word is taken."""
    (tmp_path / "shop.offsets.json").write_text("{")
    last = MemoryStore()
    chain = StoreChain([FileStore(tmp_path, "shop"), last])
    chain.start()
    last.set(batch("t", {0: 5}))
    found = chain.get()
    assert found.snapshot == batch("t", {0: 5})
    assert [("not JSON" in damage) for damage in found.damage] == [True]


def test_a_chain_without_stores_takes_everything_and_knows_nothing() -> None:
    """``offset_stores = ["kafka-commit"]``: the fetcher's commit is all there is."""
    chain = StoreChain([])
    chain.start()
    assert chain.set(batch("t", {0: 5})).result(0) is None
    assert chain.get() == Loaded(None)
