"""How many partitions topics have: processors hear it before the data that it is true of."""

from __future__ import annotations

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.addresses import Address
from tests.actors.fetcher.test_rule import LOG, SOURCE, fetcher, message, offers, polled


def test_processors_hear_how_many_partitions_topics_have() -> None:
    """With an assignment, and where the source tells it amid data: all of them, and first."""
    counts = {SOURCE.topic: 6}
    told = [fx.Tell(Address("p", "processor", at), msg.PartitionCounts(counts)) for at in (0, 1)]
    logic = fetcher()
    assigned = msg.Assigned({SOURCE: 0}, {SOURCE: LOG}, counts=counts)
    assert logic.handle(assigned, 0.0)[:2] == told
    fetched = polled(message())
    out = logic.handle(msg.Polled(fetched.batches, counts=counts), 0.0)
    assert out[:2] == told
    assert offers(out)


def test_nothing_is_said_where_nothing_is_known() -> None:
    out = fetcher().handle(polled(message()), 0.0)
    told = [e.message for e in out if isinstance(e, fx.Tell)]
    assert not [each for each in told if isinstance(each, msg.PartitionCounts)]
