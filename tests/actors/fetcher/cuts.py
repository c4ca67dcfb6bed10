"""What the tests of cuts at the fetcher share: batches, and what is asked for as they come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.addresses import Address
from actors.fetcher.cutting import Cutting
from actors.fetcher.partition import AssignedPartition
from actors.fetcher.reassembly import Reassembly
from actors.fetcher.rule import FetcherLogic
from changes.formats.engine.format import Format
from changes.model.model import Mode
from changes.routes.routing import Route, Router
from offsets.position import TopicPartition
from offsets.recovery import Watermarks

P0 = TopicPartition("t", 0)
COMMITTER = Address("p", "committer")
ROUTER = Router((Route(("*",), (), "lake.{database}.{table}", Mode.UPSERT, None),))


def fetched(first: int, values: Sequence[bytes | None], source: TopicPartition = P0) -> msg.Fetched:
    offsets = list(range(first, first + len(values)))
    return msg.Fetched(source, offsets, list(values), first + len(values), 9000)


def reading(epochs: Mapping[TopicPartition, int]) -> dict[TopicPartition, AssignedPartition]:
    """These partitions are read."""
    return {
        source: AssignedPartition(epoch, Watermarks(0, 99), 0, False, None)
        for source, epoch in epochs.items()
    }


def asked_of(told: Sequence[fx.Tell]) -> msg.CutAsked | None:
    """The cut that the committer hears of."""
    if not told:
        return None
    ((to, message),) = [(each.to, each.message) for each in told]
    assert to == COMMITTER
    assert isinstance(message, msg.CutAsked)
    return message


def take(
    cutting: Cutting, batch: msg.Fetched, now: float
) -> tuple[msg.Fetched | None, msg.CutAsked | None]:
    head, told = cutting.take(batch, reading({batch.source: 1}), now)
    return head, asked_of(told)


def answered(logic: FetcherLogic, message: object, now: float) -> list[Any]:
    """What it asks for; its offers are taken."""
    out, waiting = [], [message]
    while waiting:
        for effect in logic.handle(waiting.pop(0), now):
            out.append(effect)
            if isinstance(effect, fx.Offer):
                waiting.append(msg.Offered(effect.to, effect.batch, True))
    return out


def due(format_: Format, first: bytes) -> Cutting:
    """Its first cut is due from second 1 on, behind this message."""
    cutting = Cutting("p", format_, Reassembly(format_, 1 << 20), 1.0)
    assert take(cutting, fetched(0, [first]), 0.0)[1] is None
    return cutting
