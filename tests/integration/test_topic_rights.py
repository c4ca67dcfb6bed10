"""Kafka's own rights, given and taken: no topic that a user may not see or read is skipped silently
where it was read before."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from collector.broker.program import Broker
from collector.broker.properties import BrokerSettings
from demo.broker import DevBroker
from tests.integration.rig import Rig
from tests.integration.test_process import ended
from tests.integration.test_sqlite_sink import start
from tests.integration.test_topic_patterns import World

RIGHTS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevBroker]:
    """One that asks for rights."""
    made = DevBroker(tmp_path_factory.mktemp("rights"))
    made._broker = Broker(made.data, BrokerSettings(more=RIGHTS))
    with made as started:
        yield started


class Rights:
    """Those of everybody, to topics."""

    def __init__(self, rig: Rig) -> None:
        self._admin = AdminClient({"bootstrap.servers": rig.broker.bootstrap})

    def take(self, topic: str, operation: AclOperation) -> None:
        """All others stay."""
        self._add(topic, AclOperation.ALL, AclPermissionType.ALLOW)
        self._add(topic, operation, AclPermissionType.DENY)

    def _add(self, topic: str, operation: AclOperation, kind: AclPermissionType) -> None:
        what = ResourceType.TOPIC, topic, ResourcePatternType.LITERAL
        binding = AclBinding(*what, "User:ANONYMOUS", "*", operation, kind)
        self._admin.create_acls([binding])[binding].result(20)

    def give_back(self, topic: str) -> None:
        what = ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, None, None
        all_ = AclBindingFilter(*what, AclOperation.ANY, AclPermissionType.ANY)
        self._admin.delete_acls([all_])[all_].result(20)


@pytest.fixture
def world(rig: Rig) -> World:
    return World(rig)


READ, DESCRIBE = AclOperation.READ, AclOperation.DESCRIBE
WAYS = [
    (READ, False), (DESCRIBE, True),
    *(pytest.param(*way, marks=pytest.mark.long) for way in ((READ, True), (DESCRIBE, False))),
]  # fmt: skip
"""Those of a start that asks for a minute are long."""


@pytest.mark.parametrize(("taken", "named"), WAYS)
def test_a_topic_that_was_read_and_may_not_be_any_more(
    world: World, taken: AclOperation, named: bool
) -> None:
    """The message names it, and goes on where it was once the right is back."""
    rights, topic = Rights(world.rig), world.topic("b")
    world.make("a", 1)
    world.make("b", 1)
    options = {"start": "earliest", **({"topics": [world.topic("a"), topic]} if named else {})}
    world.catch_up(**options)
    world.insert("b", 2)
    rights.take(topic, taken)
    status, said = ended(start(world.config(**options), "--until-caught-up"))
    assert status != 0
    assert topic in said
    assert "authorization failed" in said
    assert world.topic("a") not in said
    rights.give_back(topic)
    world.catch_up(**options)
    assert (world.keys("a"), world.keys("b")) == ([1], [1, 2])
