"""Errors of database servers that pass by themselves, for those that read and those that write.

Pure.
"""

from __future__ import annotations

import re

MYSQL_FULL = frozenset((1021, 1030, 1037, 1038, 1041, 1114, 1135))
"""What MySQL or MariaDB lacks for a while: room on a disk or in a table, memory, threads."""

_FULL = re.compile(
    r"(?i)\b(errcode|errno|got error):? 28(?![0-9])|no space left on device|the table '.*' is full",
    re.ASCII,
)


def tells_of_full_disk(text: str) -> bool:
    """Whether an error, whatever its number, says that a file can't be written for want of room."""
    return _FULL.search(text) is not None
