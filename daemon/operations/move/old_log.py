"""The embedded broker beside a configuration that names another Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from collector.broker.embedded import broker_alone
from collector.broker.home import BrokerUnusable
from daemon.config.brokers import connecting
from daemon.config.config import Config
from daemon.state.edits import EditRefused
from sources.opening import open_cluster


@contextmanager
def old_log(config: Config) -> Iterator[Config]:
    """The configuration as it was with the embedded broker, which runs meanwhile. Under the state
    directory's lock. Raises EditRefused."""
    if config.broker.embedded:
        raise EditRefused(
            "[broker] embedded = true: say in the configuration where to: embedded = false, and "
            '"bootstrap.servers" in [kafka]'
        )
    own = [
        f"pipeline.{name}.kafka.{key}: all pipelines move to one Kafka: write it in [kafka]"
        for name, section in config.pipeline.items()
        for key in connecting(section.kafka)
    ]
    if own:
        raise EditRefused(*own)
    try:
        with broker_alone(config.broker, config.daemon.state_dir, open_cluster) as settings:
            left_out = connecting(config.kafka)
            others = {key: value for key, value in config.kafka.items() if key not in left_out}
            broker = config.broker.model_copy(update={"embedded": True})
            old = config.model_copy(update={"kafka": others, "broker": broker})
            old.adopt_broker(settings)
            yield old
    except BrokerUnusable as error:
        raise EditRefused(str(error)) from error
