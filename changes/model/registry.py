"""A schema registry as the formats see it: whose numbers its frames hold, and where schemas are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

RegistryKind = Literal["confluent", "apicurio"]
SchemaIds = Literal["content", "global"]
DEFAULT_IDS: SchemaIds = "content"


@dataclass(frozen=True, slots=True)
class Registry:
    """The registry that a pipeline's records name their schemas in."""

    kind: RegistryKind
    folder: Path
    """Where its schemas are kept (``changes.formats.wire.schemas``)."""
    ids: SchemaIds = DEFAULT_IDS
    """Which of Apicurio's numbers its serializers write in four bytes (``apicurio.registry.use-id``
    of the producer). Both count from 1, so no record shows it."""
