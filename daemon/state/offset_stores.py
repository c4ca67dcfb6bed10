"""Combines a pipeline's stores into one: written in the configured order, read in the same
order."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from daemon.config.pipeline_config import PipelineConfig
from daemon.state.offset_file import FileStore
from offsets.snapshot import Snapshot
from offsets.store import Loaded, OffsetStore, StoreError, combined, merged

# Positions in memory only: for tests, and for pipelines that rely on Kafka's commit alone.


class MemoryStore:
    """Holds positions while the process lives: a stop and a start keep them, a crash does not."""

    name = "memory"

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: Snapshot | None = None
        self._open = False

    def start(self) -> None:
        """Accept sets from now on."""
        with self._lock:
            self._open = True

    def get(self) -> Loaded:
        """The stored positions. Raises StoreError when not started."""
        with self._lock:
            if not self._open:
                raise StoreError(f"{self.name}: is not open")
            return Loaded(self._held)

    def set(self, batch: Snapshot) -> Future[None]:
        """Done when it returns."""
        done: Future[None] = Future()
        with self._lock:
            if self._open:
                self._held = merged(self._held, batch)
                done.set_result(None)
            else:
                done.set_exception(StoreError(f"{self.name}: is not open"))
        return done

    def stop(self) -> None:
        """Accept no more sets."""
        with self._lock:
            self._open = False


class StoreChain:
    """A store made of stores. Without any (the group's commit alone) it holds nothing.

    The next store gets a batch once the one before has confirmed it. So after any crash an earlier
    store is never behind a later one.
    """

    def __init__(self, stores: Sequence[OffsetStore]) -> None:
        self._stores = tuple(stores)

    @property
    def name(self) -> str:
        """The names of its stores."""
        return ", ".join(store.name for store in self._stores)

    def start(self) -> None:
        """Start each store. If one fails, those before it are stopped. Raises StoreError."""
        started: list[OffsetStore] = []
        try:
            for store in self._stores:
                store.start()
                started.append(store)
        except BaseException:
            for store in reversed(started):
                store.stop()
            raise

    def get(self) -> Loaded:
        """The stores' snapshots merged; an earlier store overrules a later one."""
        found = [store.get() for store in self._stores]
        return Loaded(
            combined(loaded.snapshot for loaded in found if loaded.snapshot is not None),
            tuple(damage for loaded in found for damage in loaded.damage),
        )

    def set(self, batch: Snapshot) -> Future[None]:
        """Done when the last store has it. Fails with the first error; the stores behind it get
        nothing."""
        done: Future[None] = Future()
        self._step(0, batch, done)
        return done

    def stop(self) -> None:
        """Stop each store in order: a later one may still get what an earlier one finishes."""
        for store in self._stores:
            store.stop()

    def _step(self, index: int, batch: Snapshot, done: Future[None]) -> None:
        if index == len(self._stores):
            done.set_result(None)
            return

        def then(ended: Future[None]) -> None:
            error = ended.exception()
            if error is None:
                self._step(index + 1, batch, done)
            else:
                done.set_exception(error)

        self._stores[index].set(batch).add_done_callback(then)


def make_stores(pipeline: PipelineConfig) -> StoreChain:
    """A pipeline's stores, not started. The caller holds the state directory's lock.

    ``kafka-commit`` is not among them: the running daemon commits through its consumer, a member of
    the group, when all of these have confirmed.
    """
    name, section, topics = pipeline.name, pipeline.section, pipeline.topics()
    makers: dict[str, Callable[[], OffsetStore]] = {
        "memory": MemoryStore,
        "file": lambda: FileStore(pipeline.state_dir, name),
        "kafka-topic": lambda: topics.offsets(section.offset_topic, name, pipeline.group),
    }
    return StoreChain([makers[kind]() for kind in section.offset_stores if kind in makers])
