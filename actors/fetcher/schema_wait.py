"""What a pipeline's registry says, and which partitions are paused until a schema comes."""

from __future__ import annotations

from collections.abc import Iterable

from actors.contract import effects as fx
from actors.contract import messages as msg
from actors.contract.figures import RegistryFigures, SchemasAwaited
from actors.fetcher.recognition import Recognition
from changes.formats.wire.schemas import SchemaId
from offsets.position import TopicPartition
from settings.counted import counted

_SHOWN = 3
"""Schemas that a line names."""


class SchemaWait:
    """Used by the fetcher's thread alone."""

    def __init__(self, recognition: Recognition) -> None:
        self._recognition = recognition
        self._paused: set[TopicPartition] = set()
        self._missing: dict[SchemaId, str] = {}
        self._registry = ""
        self._away: str | None = None
        self._away_since = 0.0
        self._waits_since: float | None = None

    def hear(self, state: msg.RegistryState, now: float) -> None:
        """The registry's state has changed."""
        if self._away is None:
            self._away_since = now
        self._registry, self._away = state.registry, state.away

    def missing(self, identity: SchemaId, reason: str) -> fx.Log:
        """A schema will not come: its messages are bad records."""
        self._missing[identity] = reason
        return fx.Log("error", "schema_missing", {"schema": str(identity), "reason": reason})

    def kept(self, identities: Iterable[SchemaId]) -> None:
        """They came, if late."""
        for identity in identities:
            self._missing.pop(identity, None)

    def why_missing(self, value: bytes | None) -> str | None:
        """Why a bad message's schema did not come, None where that is not what is wrong."""
        for identity in sorted(self._recognition.needed_by(value) & self._missing.keys()):
            return (
                f"{self._missing[identity]}. Register it again under this number; or set "
                'on_bad_record = "dead-letter", and replay such records once it is there'
            )
        return None

    def flow(self, *, paused: bool) -> list[fx.FetcherEffect]:
        """Pause the partitions that wait now, and let flow those that do no more. ``paused``: all
        are, for another reason."""
        awaited = self._recognition.awaiting_schemas
        pause, go = awaited.keys() - self._paused, self._paused - awaited.keys()
        self._paused = set(awaited)
        out: list[fx.FetcherEffect] = []
        if pause:
            schemas = sorted({str(each) for source in pause for each in awaited[source]})
            fields = {"sources": [str(source) for source in sorted(pause)], "schemas": schemas}
            out += [fx.Pause(tuple(sorted(pause))), fx.Log("info", "schema_awaited", fields)]
        if go and not paused:
            out.append(fx.Resume(tuple(sorted(go))))
        return out

    def resumed(self) -> list[fx.FetcherEffect]:
        """Let all partitions flow but those that wait for a schema."""
        self._paused = set(self._recognition.awaiting_schemas)
        waits = [fx.Pause(tuple(sorted(self._paused)))] if self._paused else []
        return [fx.Resume(), *waits]

    def given_up(self, now: float, patience_s: float) -> str | None:
        """Why a run that reads only what is there ends, once something has waited that long."""
        waiting = self._recognition.waiting_for_schemas()
        if not waiting:
            self._waits_since = None
            return None
        if self._waits_since is None:
            self._waits_since = now
        if now - self._waits_since < patience_s:
            return None
        topic, messages = min(waiting.items())
        schemas = ", ".join(self._schemas_of(topic))
        why = f": {self._away}" if self._away is not None else ""
        return (
            f"{topic}: {counted(messages, 'message waits', 'messages wait')} for schema {schemas}, "
            f"which registry {self._registry or 'of the pipeline'} has not given for "
            f"{patience_s:g} s{why}"
        )

    def _schemas_of(self, topic: str) -> tuple[str, ...]:
        awaited = self._recognition.awaiting_schemas
        found = {str(i) for source, ids in awaited.items() if source.topic == topic for i in ids}
        return tuple(sorted(found)[:_SHOWN])

    def figures(self, now: float) -> RegistryFigures:
        """For the status."""
        awaited = {
            topic: SchemasAwaited(messages, self._schemas_of(topic))
            for topic, messages in sorted(self._recognition.waiting_for_schemas().items())
        }
        away_s = None if self._away is None else now - self._away_since
        return RegistryFigures(self._away, away_s, awaited)
