"""A broker with users and rights, as a cloud service's is: who is not named in a rule gets nothing.

A user of it logs in by SCRAM-SHA-512, as those of Tencent's and Alibaba's subscriptions do.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from actors.runtime.programs import HOST, free_port
from collector.broker.program import Broker
from collector.broker.properties import MECHANISM, USER, BrokerSecrets, BrokerSettings

PASSWORD = "a-password-of-a-group"
MECHANISM_OF_USERS = "SCRAM-SHA-512"
START_WITHIN_S = 60.0
ANSWER_S = 20.0

Right = tuple[ResourceType, str, AclOperation]
"""One rule: what, its name, what may be done with it."""


def read(topic: str) -> Right:
    return ResourceType.TOPIC, topic, AclOperation.READ


def describe(topic: str) -> Right:
    return ResourceType.TOPIC, topic, AclOperation.DESCRIBE


def group(name: str) -> Right:
    return ResourceType.GROUP, name, AclOperation.READ


class GuardedBroker:
    """One broker on a folder, with its administrator's client."""

    def __init__(self, data: Path) -> None:
        self._secret = "s" * 32
        scram = "org.apache.kafka.common.security.scram.ScramLoginModule"
        both = f"{MECHANISM},{MECHANISM_OF_USERS}"
        more = {
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": f"User:{USER}",
            "allow.everyone.if.no.acl.found": "false",
            "listener.name.client.sasl.enabled.mechanisms": both,
            f"listener.name.client.{MECHANISM_OF_USERS.lower()}.sasl.jaas.config": (
                f"{scram} required;"
            ),
        }
        login = BrokerSecrets(self._secret, "c" * 32)
        self._broker = Broker(data, BrokerSettings(login=login, more=more))
        self.port = free_port()
        self.admin: AdminClient

    def __enter__(self) -> GuardedBroker:
        self._broker.launch(self.port)
        self.admin = AdminClient({**self.login(USER, self._secret, MECHANISM), "log_level": 0})
        deadline = time.monotonic() + START_WITHIN_S
        while True:
            try:
                self.admin.list_topics(timeout=1.0)
                return self
            except KafkaException:
                if time.monotonic() > deadline or not self._broker.program.runs:
                    raise AssertionError(self._broker.program.tail(20)) from None

    def __exit__(self, *_: object) -> None:
        self._broker.program.stop(20)

    def login(
        self, user: str, password: str = PASSWORD, mechanism: str = MECHANISM_OF_USERS
    ) -> dict[str, Any]:
        """What a client of this user needs."""
        return {
            "bootstrap.servers": f"{HOST}:{self.port}",
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.username": user,
            "sasl.password": password,
        }

    def topic(self, name: str, records: Collection[bytes], partitions: int = 1) -> None:
        """Make a topic of these records."""
        self.admin.create_topics([NewTopic(name, partitions, 1)])[name].result(ANSWER_S)
        producer = Producer(self.login(USER, self._secret, MECHANISM))
        for record in records:
            producer.produce(name, record, partition=0)
        assert producer.flush(ANSWER_S) == 0

    def user(self, name: str, *rights: Right) -> None:
        """A user who may do this and nothing else."""
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        wanted = UserScramCredentialUpsertion(name, info, PASSWORD.encode())
        self.admin.alter_user_scram_credentials([wanted])[name].result(ANSWER_S)
        self.allow(name, *rights)

    def allow(self, user: str, *rights: Right) -> None:
        """One more rule each."""
        rules = [
            AclBinding(
                what, name, ResourcePatternType.LITERAL, f"User:{user}", "*", operation,
                AclPermissionType.ALLOW,
            )
            for what, name, operation in rights
        ]  # fmt: skip
        for done in self.admin.create_acls(rules).values() if rules else ():
            done.result(ANSWER_S)
