"""Which failed commits have surely not landed: only then may what was written for them go.

A commit whose reply was lost may be the table's next state, now or a moment later. Its files are
left where they are: an orphan costs room, a missing file costs the table.
"""

from __future__ import annotations

from sparkwriter.session.java_failures import java_classes, reason

_REFUSED = ("org.apache.iceberg.exceptions.CommitFailedException",)
"""The catalog has compared and said no: Iceberg removes the files after it, too."""

_NOT_BEGUN = ("Failed to write json to file", "Failed to create file")
"""Iceberg's words where the metadata file could not be written that the pointer would name."""

_ROLLED_BACK = ("[SQLITE_FULL]", "[SQLITE_BUSY]", "[SQLITE_READONLY", "[SQLITE_CANTOPEN")
"""SQLite's words where it took nothing: it runs in the same process, no reply can be lost."""

_NOT_IN_ORDER = (
    "Expected sorted snapshot log entries",
    "Expected sorted previous metadata log entries",
    "Invalid update timestamp",
)
"""Iceberg's words where its clock stands before the table's last commit, by more than a minute. It
says so while it makes the metadata, before the catalog is asked."""


def why(error: BaseException) -> str:
    """Why a commit failed, in one line."""
    if _is_clock_behind(error):
        return (
            "this machine's clock stands before the table's last commit, which some clock dated"
            f" ahead; writes go on once it has passed that ({reason(error)})"
        )
    return reason(error)


def never_lands(error: BaseException) -> bool:
    """Whether a commit that failed so has not changed the catalog, nor will.

    True only once the table has been looked at since, and does not show it: a client, a driver or a
    gateway that asks again by itself is refused because of its own commit.
    """
    if _is_unknown(error):
        return False
    return java_classes(error)[0] in _REFUSED or never_began(error)


def never_began(error: BaseException) -> bool:
    """The same without a look: the catalog can't have taken anything."""
    if _is_unknown(error):
        return False
    text = str(error)
    return any(words in text for words in (*_NOT_BEGUN, *_ROLLED_BACK)) or _is_clock_behind(error)


def _is_clock_behind(error: BaseException) -> bool:
    """Whether Iceberg made no metadata here. A catalog's server may say the same of its own clock:
    of an answer over a network nothing is concluded."""
    made_here = java_classes(error)[:1] == ("java.lang.IllegalArgumentException",)
    return made_here and any(words in str(error) for words in _NOT_IN_ORDER)


def _is_unknown(error: BaseException) -> bool:
    """Whether there was no reply, or one that does not know."""
    classes = java_classes(error)
    return not classes or any(name.endswith(".CommitStateUnknownException") for name in classes)
