"""What every store of positions must do; all four pass the same tests on the real thing."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest

from demo.broker import DevBroker
from offsets.position import TopicPartition
from offsets.snapshot import Snapshot
from offsets.store import Loaded, OffsetStore, StoreError
from tests.daemon.state.kits import CommitKit, FileKit, Kit, MemoryKit, TopicKit, batch

pytestmark = pytest.mark.long

WITHIN_S = 60.0
KAFKA = [
    pytest.param("kafka-commit", marks=pytest.mark.integration),
    pytest.param("kafka-topic", marks=pytest.mark.integration),
]


@pytest.fixture(params=["memory", "file", *KAFKA])
def kit(request: pytest.FixtureRequest, tmp_path: Path) -> Kit:
    """One world for each store."""
    if request.param == "memory":
        return MemoryKit()
    if request.param == "file":
        return FileKit(tmp_path)
    broker: DevBroker = request.getfixturevalue("store_broker")
    if request.param == "kafka-commit":
        return CommitKit(broker.bootstrap)
    return TopicKit(broker.bootstrap)


@pytest.fixture
def store(kit: Kit) -> Iterator[OffsetStore]:
    """One instance, started."""
    made = kit.make()
    made.start()
    yield made
    made.stop()


def frontiers(loaded: Loaded, topic: str) -> dict[int, int]:
    """What is recorded, as frontiers of the kit's topic."""
    if loaded.snapshot is None:
        return {}
    found = loaded.snapshot.partitions
    return {s.partition: state.frontier for s, state in found.items() if s.topic == topic}


def test_what_is_set_is_got(kit: Kit, store: OffsetStore) -> None:
    """Frontiers from every store; marks, topic ids and the force text from those that keep them."""
    sent = batch(kit.topic, {0: 5, 1: 7}, forced="second try")
    store.set(sent).result(WITHIN_S)
    found = store.get()
    assert frontiers(found, kit.topic) == {0: 5, 1: 7}
    assert found.damage == ()
    assert found.snapshot is not None
    if kit.whole:
        assert found.snapshot == sent
    else:
        assert (found.snapshot.targets, found.snapshot.forced) == ({}, None)


def test_nothing_is_recorded_at_first(store: OffsetStore) -> None:
    """A first start is told from a position of zero, and is no damage."""
    assert store.get() == Loaded(None)


def test_the_newest_wins(kit: Kit, store: OffsetStore) -> None:
    """Also when it is lower: a reset goes back."""
    store.set(batch(kit.topic, {0: 5})).result(WITHIN_S)
    store.set(batch(kit.topic, {0: 8})).result(WITHIN_S)
    store.set(batch(kit.topic, {0: 2})).result(WITHIN_S)
    assert frontiers(store.get(), kit.topic) == {0: 2}


def test_a_partition_that_is_not_named_stays(kit: Kit, store: OffsetStore) -> None:
    """A member says what is its own, and takes nothing away from the others."""
    store.set(batch(kit.topic, {0: 5})).result(WITHIN_S)
    store.set(batch(kit.topic, {1: 7})).result(WITHIN_S)
    found = store.get()
    assert frontiers(found, kit.topic) == {0: 5, 1: 7}
    if kit.whole:
        assert found.snapshot is not None
        assert set(found.snapshot.targets) == {"lake.s.t0", "lake.s.t1"}


def test_an_unknown_partition_is_not_there(kit: Kit, store: OffsetStore) -> None:
    """Not zero, not an error: whoever asks then looks elsewhere."""
    store.set(batch(kit.topic, {0: 5})).result(WITHIN_S)
    found = store.get().snapshot
    assert found is not None
    assert found.partitions.get(TopicPartition(kit.topic, 4)) is None


def test_a_batch_without_partitions_is_fine(kit: Kit, store: OffsetStore) -> None:
    """Nothing assigned, nothing to say: what is there stays."""
    store.set(batch(kit.topic, {0: 5})).result(WITHIN_S)
    store.set(batch(kit.topic, {})).result(WITHIN_S)
    assert frontiers(store.get(), kit.topic) == {0: 5}


def test_a_new_instance_finds_what_an_old_one_set(kit: Kit, store: OffsetStore) -> None:
    """That is what a store is for; memory alone forgets."""
    store.set(batch(kit.topic, {0: 5, 1: 7})).result(WITHIN_S)
    store.stop()
    again = kit.make()
    again.start()
    try:
        expected = {0: 5, 1: 7} if kit.survives else {}
        assert frontiers(again.get(), kit.topic) == expected
    finally:
        again.stop()


def test_another_members_writes_are_seen_where_it_is_shared(kit: Kit, store: OffsetStore) -> None:
    """Both ways, while both run; what one sets the other's set leaves alone."""
    other = kit.make_other()
    other.start()
    try:
        other.set(batch(kit.topic, {1: 7})).result(WITHIN_S)
        store.set(batch(kit.topic, {0: 5})).result(WITHIN_S)
        assert frontiers(store.get(), kit.topic) == ({0: 5, 1: 7} if kit.shared else {0: 5})
        assert frontiers(other.get(), kit.topic) == ({0: 5, 1: 7} if kit.shared else {1: 7})
    finally:
        other.stop()


def test_a_set_that_fails_says_so_through_the_future(kit: Kit, store: OffsetStore) -> None:
    """``set`` raises nothing; the future's error and its callback name the store."""
    refused = kit.refuse(store)
    heard: list[BaseException | None] = []
    called = threading.Event()

    def callback(done: Future[None]) -> None:
        heard.append(done.exception())
        called.set()

    future = store.set(refused)
    future.add_done_callback(callback)
    with pytest.raises(StoreError, match=rf"^{store.name}: "):
        future.result(WITHIN_S)
    assert called.wait(WITHIN_S)
    assert str(heard[0]).startswith(f"{store.name}: ")


def test_a_set_that_fails_leaves_no_half_truth(kit: Kit, store: OffsetStore) -> None:
    """File and memory: nothing of it. Kafka: each entry whole, the old one or the new one, and no
    word of a force that was not carried out."""
    before = batch(kit.topic, {0: 5, 1: 7})
    store.set(before).result(WITHIN_S)
    with pytest.raises(StoreError):
        store.set(kit.refuse(store)).result(WITHIN_S)
    kit.repair(store)
    found = store.get()
    assert found.snapshot is not None
    if kit.shared:
        assert set(frontiers(found, kit.topic).items()) <= {(0, 5), (0, 9), (1, 7), (1, 9)}
        assert set(frontiers(found, kit.topic)) == {0, 1}
        assert found.snapshot.forced is None
    else:
        assert found.snapshot == before


def test_after_a_failure_the_next_set_goes_through(kit: Kit, store: OffsetStore) -> None:
    """One bad batch, or a disk that is full for a while, is not the end of the store."""
    with pytest.raises(StoreError):
        store.set(kit.refuse(store)).result(WITHIN_S)
    kit.repair(store)
    store.set(batch(kit.topic, {0: 11})).result(WITHIN_S)
    assert frontiers(store.get(), kit.topic)[0] == 11


def test_before_the_start_and_after_the_stop_nothing_is_taken(kit: Kit) -> None:
    """A committer that comes late must not write over its successor."""
    store = kit.make()
    with pytest.raises(StoreError, match="is not open"):
        store.set(batch(kit.topic, {0: 1})).result(WITHIN_S)
    store.start()
    store.set(batch(kit.topic, {0: 5})).result(WITHIN_S)
    store.stop()
    with pytest.raises(StoreError, match="is not open"):
        store.set(batch(kit.topic, {0: 6})).result(WITHIN_S)
    with pytest.raises(StoreError, match="is not open"):
        store.get()
    again = kit.make()
    again.start()
    assert frontiers(again.get(), kit.topic) == ({0: 5} if kit.survives else {})
    again.stop()


def test_a_second_stop_does_nothing(store: OffsetStore) -> None:
    """The end of a process goes over its steps whatever failed before."""
    store.stop()
    store.stop()
    with pytest.raises(StoreError, match="is not open"):
        store.get()


def test_a_stop_finishes_what_was_taken(kit: Kit) -> None:
    """The last commit of a run is set just before the stop."""
    store = kit.make()
    store.start()
    futures = [store.set(batch(kit.topic, {0: n})) for n in range(20)]
    store.stop()
    assert [future.exception(0) for future in futures] == [None] * 20
    if kit.survives:
        again = kit.make()
        again.start()
        assert frontiers(again.get(), kit.topic) == {0: 19}
        again.stop()


def test_sets_without_waiting_keep_their_order(kit: Kit, store: OffsetStore) -> None:
    """The last call's batch is what stands, and the futures come in the order of the calls."""
    order: list[int] = []
    futures = []
    for n in range(100):
        future = store.set(batch(kit.topic, {0: n}))
        future.add_done_callback(lambda _, n=n: order.append(n))  # type: ignore[misc]
        futures.append(future)
    for future in futures:
        future.result(WITHIN_S)
    assert order == list(range(100))
    assert frontiers(store.get(), kit.topic) == {0: 99}


def test_sets_of_several_threads_are_each_whole(kit: Kit, store: OffsetStore) -> None:
    """Each thread's last word stands, in its order; none is lost under another's."""
    begin = threading.Barrier(4)
    failures: list[BaseException] = []

    def say(number: int) -> None:
        begin.wait(WITHIN_S)
        try:
            for n in range(25):
                future = store.set(batch(kit.topic, {number: n}))
            future.result(WITHIN_S)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=say, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WITHIN_S)
    assert failures == []
    assert frontiers(store.get(), kit.topic) == dict.fromkeys(range(4), 24)


# --- a broker that is away


def until_set(store: OffsetStore, what: Snapshot) -> None:
    """As the committer does: a set that failed is tried again; each takes its time by itself."""
    deadline = time.monotonic() + 60
    while (error := store.set(what).exception(WITHIN_S)) is not None:
        assert time.monotonic() < deadline, error


@pytest.mark.integration
@pytest.mark.timeout(200)
@pytest.mark.parametrize("make", [CommitKit, TopicKit])
def test_a_broker_that_goes_away_fails_the_set_in_time(
    make: type[CommitKit | TopicKit], fragile_broker: DevBroker
) -> None:
    """Within its timeout, naming store and broker, the queued one too; then it goes on."""
    kit = make(fragile_broker.bootstrap, timeout_s=2.0)
    store = kit.make()
    store.start()
    until_set(store, batch(kit.topic, {0: 5}))
    fragile_broker.kill()
    try:
        begun = time.monotonic()
        futures = [store.set(batch(kit.topic, {0: n})) for n in (6, 7)]
        for future in futures:
            with pytest.raises(StoreError, match=rf"^{store.name}: .* at 127|^{store.name}: not"):
                future.result(WITHIN_S)
        assert time.monotonic() - begun < 10
    finally:
        fragile_broker.start()
    until_set(store, batch(kit.topic, {0: 8}))
    assert frontiers(store.get(), kit.topic) == {0: 8}
    store.stop()


@pytest.mark.parametrize("make", [CommitKit, TopicKit])
def test_a_start_without_a_broker_names_store_and_address(
    make: type[CommitKit | TopicKit], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not wait for ever."""
    for module in ("commit_store", "topic_store"):
        monkeypatch.setattr(f"sources.kafka.{module}.ANSWER_TIMEOUT_S", 0.5)
    kit = make.__new__(make)
    kit.settings, kit.timeout_s = {"bootstrap.servers": "127.0.0.1:1"}, 1.0
    kit.group = kit.topic = kit.offset_topic = "x"  # type: ignore[union-attr]
    store = kit.make()
    with pytest.raises(StoreError, match=rf"^{store.name}: .* at 127\.0\.0\.1:1: "):
        store.start()
