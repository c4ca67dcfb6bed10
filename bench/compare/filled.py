"""The topics of a comparison that are filled before a contestant runs, and their schemas."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path

from bench.compare.debezium_avro import registered, unregistered
from bench.compare.topic import fill
from bench.compare.workloads import Workload
from demo.servers.apicurio import Apicurio
from demo.servers.jars import bring


class FilledTopics:
    """Each is filled once, for all who read it. One thread's; ``close`` ends it."""

    def __init__(self, bootstrap: str, var: Path, say: Callable[[str], None]) -> None:
        self._bootstrap, self._var, self._say = bootstrap, var, say
        self.ends: dict[str, dict[str, tuple[int, ...]]] = {}
        """By a workload's topic: by topic the end of each partition."""

    def fill(self, workload: Workload) -> None:
        """Fill the workload's topics where they are not yet. Raises ProduceError, ServerError,
        JarsError."""
        if workload.topic in self.ends:
            return
        topics = "topic" if len(workload.topics) == 1 else f"{len(workload.topics)} topics"
        self._say(f"{workload.topic}: {workload.messages:,} messages into the {topics}")
        url = self.registry(workload)
        register = registered(url) if url else unregistered
        self.ends[workload.topic] = fill(self._bootstrap, workload, register)

    def registry(self, workload: Workload) -> str:
        """The address of Confluent's API where the schemas of its messages are, empty where they
        have none. Raises ServerError, JarsError."""
        return self._registry.confluent_url if workload.format == "debezium-avro" else ""

    def close(self) -> None:
        """End the registry."""
        if "_registry" in self.__dict__:
            self._registry.kill()

    @cached_property
    def _registry(self) -> Apicurio:
        """Started when it is first needed."""
        bring(Apicurio.name)
        registry = Apicurio(self._var / "registry")
        try:
            return registry.start()
        except BaseException:
            registry.kill()
            raise
