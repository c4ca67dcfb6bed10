"""The programs that last for a whole run: databases, readers, sinks, a broker."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from demo.broker import DevBroker
from demo.servers.apicurio import Apicurio
from demo.servers.jars import bring
from tests.live.connect import Connect
from tests.live.readers import Reader
from tests.live.sinks import Sink
from tests.live.sources import Source
from tests.live.ways import READERS, SINKS, SOURCES, Way


@dataclass(slots=True)
class Bench:
    """What runs."""

    folder: Path
    broker: DevBroker
    ways: Sequence[tuple[Source, Reader]]
    sinks: Sequence[Sink]
    registry: Apicurio | None = None
    """Where a wire needs one."""

    def of(self, seed: int) -> tuple[Source, Reader, Sink]:
        """Ways take turns by the seed; behind each turn comes the next sink."""
        turn, place = divmod(seed, len(self.ways))
        return *self.ways[place], self.sinks[turn % len(self.sinks)]

    @property
    def sources(self) -> Sequence[Source]:
        """Each once."""
        return list(dict.fromkeys(source for source, _ in self.ways))

    @property
    def readers(self) -> Sequence[Reader]:
        """Each once."""
        return list(dict.fromkeys(reader for _, reader in self.ways))

    def reading(self) -> frozenset[str]:
        """Who follows a log now."""
        return frozenset[str]().union(*(source.readers() for source in self.sources))


@contextmanager
def bench(
    folder: Path, ways: Sequence[Way], sinks: Sequence[str], wires: Sequence[str] = ("json",)
) -> Iterator[Bench]:
    """Start the programs of some ways, sinks and wires; all are gone afterwards.

    Each way has a server of its own: Maxwell ends itself at statements of databases that it was
    told to leave out. Raises LiveError, JarsError, BrokerError.
    """
    with ExitStack() as stack:
        sources = []
        for way in ways:
            source = SOURCES[way.source](folder / f"source-{way.source}-{way.reader}")
            source.start()
            stack.callback(source.program.kill)
            sources.append(source)
        written = []
        for name in sinks:
            sink = SINKS[name](folder / f"sink-{name}")
            sink.start()
            stack.callback(sink.kill)
            written.append(sink)
        broker = stack.enter_context(DevBroker(folder / "broker"))
        registry = None
        if any(wire != "json" for wire in wires):
            bring(Apicurio.name)
            registry = stack.enter_context(Apicurio(folder / "registry"))
        readers: dict[str, Reader] = {}
        for name in dict.fromkeys(way.reader for way in ways):
            reader = readers[name] = READERS[name](folder / name, broker.bootstrap)
            if registry is not None and isinstance(reader, Connect):
                reader.add_converters()
            reader.start()
            stack.callback(reader.kill)
        taken = [(s, readers[way.reader]) for s, way in zip(sources, ways, strict=True)]
        yield Bench(folder, broker, taken, written, registry)
