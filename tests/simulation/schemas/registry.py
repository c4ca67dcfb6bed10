"""A schema registry in the simulation, and records that name schemas of it.

The schedule, the files and the rule of the second meaning are the daemon's own; HTTP is not there.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

from actors.contract.addresses import Address
from changes.formats.canal.json import CanalJson
from changes.formats.engine.format import Confidence, Format, Packed, TableDecoder, unpack
from changes.formats.engine.layout import Refused
from changes.formats.wire.decoder import WireDecoder
from changes.formats.wire.format import WireFormat
from changes.formats.wire.frames import frame_of
from changes.formats.wire.schemas import Schema, SchemaFolder, SchemaId
from changes.model.model import BadMessage, ColumnTypes, FormatOptions, Mode
from changes.model.registry import Registry
from offsets.position import TopicPartition
from sources.registry.errors import RegistryAway, SchemaNotFound
from sources.registry.keeper import SchemaStore
from sources.registry.schedule import Answers, Schedule

MESSAGES_OF_ONE = 6
"""Messages of a partition that name the same schema, one after another."""

GRACE_S = 20.0
"""How long a schema may be missing; one that comes late comes within half of it."""


def registry_in(folder: Path) -> Registry:
    """A registry whose schemas are kept in an empty folder."""
    return Registry("confluent", folder)


def schema_of(source: TopicPartition, offset: int) -> SchemaId:
    """The schema of a message: both partitions use some of the other's."""
    return SchemaId("id", str(1 + (offset // MESSAGES_OF_ONE + source.partition) % 5))


def text_of(identity: SchemaId) -> str:
    """What a schema says: the two digits that begin its payloads."""
    return f'"{int(identity.value):02}"'


def framed(source: TopicPartition, offset: int, value: bytes) -> bytes:
    """A value as its producer writes it: frame, what only its schema explains, Canal's JSON."""
    identity = schema_of(source, offset)
    mark = text_of(identity).strip('"').encode()
    return b"\0" + int(identity.value).to_bytes(4, "big") + mark + value


class FramedCanalJson(WireFormat):
    """Canal JSON behind frames. Decoding with another schema than the writer's is found out."""

    name: str = "canal-json"

    def inner(self, options: FormatOptions) -> Format:
        return CanalJson(options)

    @staticmethod
    def recognise(record: Packed) -> Confidence:
        return Confidence.NO

    def plain(self, value: bytes | None, *, whole: bool = False) -> bytes:
        try:
            return self._plain(value or b"")
        except Refused as refused:
            raise BadMessage(str(refused)) from refused

    def _plain(self, packed: bytes) -> bytes:
        registry, value = self._options.registry, unpack(packed).value
        assert registry is not None
        assert value is not None
        frame = frame_of(value, (), registry, is_key=False)
        assert frame is not None
        kept = SchemaFolder(registry.folder).get(frame.schema)
        if kept is None:
            raise Refused(f"schema {frame.schema} is not kept")
        mark = value[frame.begin : frame.begin + 2]
        assert kept.text == f'"{mark.decode()}"', "decoded with another schema than the writer's"
        return value[frame.begin + 2 :]

    def table_decoder(
        self, mode: Mode, keys: tuple[str, ...] | None, types: ColumnTypes = ()
    ) -> WireDecoder:
        inner: TableDecoder = self._inner.table_decoder(mode, keys, types)
        return WireDecoder(inner, lambda values, _names: map(self._plain, values), {})


class SimulatedRegistry:
    """One life's keeper: it acts when the scheduler lets it."""

    def __init__(self, registry: Registry, rng: random.Random) -> None:
        self._rng = rng
        self._store = SchemaStore(registry.folder)
        self.schedule = Schedule("main", GRACE_S, check_every_s=30.0)
        self._asked: list[SchemaId] = []
        self._late = {str(number): rng.choice((0.0, GRACE_S / 2)) for number in range(1, 6)}
        self.away = 0.4
        """The share of questions that get no answer."""
        self.emptied = False
        """Whether its numbers mean something else."""

    def want(
        self, user: Address, identities: Sequence[SchemaId], now: float
    ) -> tuple[tuple[SchemaId, ...], Answers]:
        """As ``SchemaKeeper.want``: what is kept, and what the actor hears."""
        kept = tuple(each for each in identities if self._store.usable(each))
        for each in identities:
            self.schedule.want(user, each, kept=each in kept, now=now)
        return kept, self.schedule.state_for(user)

    def act(self, now: float) -> Answers:
        """Ask for what is due, or give one of the answers that are under way: some take long."""
        self._asked += self.schedule.take_due(now, 4)
        if not self._asked or self._rng.random() < 0.3:
            return []
        identity = self._asked.pop(self._rng.randrange(len(self._asked)))
        try:
            second = self._store.keep(identity, self._fetch(identity, now))
        except RegistryAway as error:
            return self.schedule.failed(identity, error, now)
        except SchemaNotFound as error:
            return self.schedule.not_found(identity, str(error), now)
        if second is not None:
            return self.schedule.changed(identity, second, now)
        return self.schedule.kept(identity, now)

    def _fetch(self, identity: SchemaId, now: float) -> Schema:
        unmet = self.emptied and not self._store.usable(identity)  # nobody could find that out
        if unmet or self._rng.random() < self.away:
            raise RegistryAway("unreachable", "down")
        if now < self._late[identity.value]:
            raise SchemaNotFound(f"schema {identity}: not yet")
        return Schema("AVRO", '"xx"' if self.emptied else text_of(identity))

    @property
    def next_at(self) -> float:
        """When it has something to do."""
        due = self.schedule.next_at()
        return 0.0 if self._asked else float("inf") if due is None else due
