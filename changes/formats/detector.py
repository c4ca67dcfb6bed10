"""Which format detects those of topics: asked of each pipeline, so without all formats' modules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from changes.formats import AUTO

if TYPE_CHECKING:
    from changes.formats.auto import AutoFormat
    from changes.formats.engine.format import Format


def detector(format_: Format) -> AutoFormat | None:
    """The format, where it detects the formats of topics; None where the configuration names it."""
    if format_.name != AUTO:
        return None
    from changes.formats.auto import AutoFormat  # late: it knows all formats

    return format_ if isinstance(format_, AutoFormat) else None
