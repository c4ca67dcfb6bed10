"""The section of a route: which tables go where, and what becomes of their rows."""

from __future__ import annotations

import json
from typing import Literal, Self

from pydantic import Field, model_validator

from changes.shaping.shape import Shape, unfit_names
from daemon.config.sections import Section


class RouteSection(Section):
    """``[[pipeline.NAME.route]]``: which tables go where, and how."""

    tables: list[str] | None = None
    exclude: list[str] = Field(default_factory=list)
    target: str
    mode: Literal["upsert", "append"] = "upsert"
    write: str | None = None
    keys: list[str] | None = Field(None, min_length=1)
    types: dict[str, str] = Field(default_factory=dict)
    filter: str | None = Field(None, min_length=1)
    computed: dict[str, str] = Field(default_factory=dict)
    columns: list[str] | None = Field(None, min_length=1)
    drop_columns: list[str] = Field(default_factory=list)
    rename: dict[str, str] = Field(default_factory=dict)
    reader_renames: dict[str, str] = Field(default_factory=dict)
    delete: Literal["hard", "soft"] = "hard"
    metadata: list[str] = Field(default_factory=list)
    history: bool = False
    shard: str | None = Field(None, min_length=1)
    mask: dict[str, str] = Field(default_factory=dict)
    mask_salt: str = ""
    partition_by: list[str] = Field(default_factory=list)
    sort_by: list[str] = Field(default_factory=list)
    table_properties: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _has_a_shape(self) -> Self:
        self.shape.check_keys(self.keys or ())
        for names in (self.reader_renames.keys(), self.reader_renames.values()):
            for problem in unfit_names("reader_renames", names):
                raise ValueError(problem)
        if self.mode == "append" and (self.metadata or self.history or self.delete == "soft"):
            raise ValueError(
                'delete, history, metadata: a changelog (mode = "append") shows each change itself'
            )
        return self

    @property
    def options(self) -> dict[str, str]:
        """What it asks of its sink, by key."""
        asked = {} if self.write is None else {"write": self.write}
        for key, value in (
            ("partition_by", self.partition_by),
            ("sort_by", self.sort_by),
            ("table_properties", self.table_properties),
        ):
            if value:
                asked[key] = json.dumps(value, ensure_ascii=False)
        return asked

    @property
    def shape(self) -> Shape:
        """What it makes of its rows. Raises ValueError."""
        return Shape(
            filter=self.filter or "",
            computed=tuple(self.computed.items()),
            masks=tuple(self.mask.items()),
            rename=tuple(self.rename.items()),
            columns=None if self.columns is None else tuple(self.columns),
            drop=tuple(self.drop_columns),
            delete=self.delete,
            metadata=tuple(self.metadata),
            history=self.history,
            shard=self.shard or "",
            shard_of=tuple(self.tables or ()) if self.shard else (),
            partition_by=tuple(self.partition_by),
            sort_by=tuple(self.sort_by),
            salt=self.mask_salt,
        )
