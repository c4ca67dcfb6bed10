"""Which failed commits have surely not landed: only then may what was written for them go.

A commit whose reply was lost may be the table's next state, now or a moment later. Its files are
left where they are: an orphan costs room, a missing file costs the table.
"""

from __future__ import annotations

from sparkwriter.session.java_failures import java_classes

_REFUSED = ("org.apache.iceberg.exceptions.CommitFailedException",)
"""The catalog has compared and said no: Iceberg removes the files after it, too."""

_NOT_BEGUN = ("Failed to write json to file", "Failed to create file")
"""Iceberg's words where the metadata file could not be written that the pointer would name."""

_ROLLED_BACK = ("[SQLITE_FULL]", "[SQLITE_BUSY]", "[SQLITE_READONLY", "[SQLITE_CANTOPEN")
"""SQLite's words where it took nothing: it runs in the same process, no reply can be lost."""


def never_lands(error: BaseException) -> bool:
    """Whether a commit that failed so has not changed the catalog, nor will."""
    classes = java_classes(error)
    if not classes or any(name.endswith(".CommitStateUnknownException") for name in classes):
        return False  # no reply, or one that does not know
    if classes[0] in _REFUSED:
        return True
    text = str(error)
    return any(words in text for words in (*_NOT_BEGUN, *_ROLLED_BACK))
