"""Whether a warehouse that is a folder of this machine can be written."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path

from actors.contract.ports import SinkUnavailable


def check_warehouse(sink: str, properties: Mapping[str, str]) -> None:
    """Raise SinkUnavailable, naming sink and path, where a local warehouse can't be written.

    Makes the folder when it is missing. A warehouse with a scheme other than ``file`` is left to
    the catalog to check.
    """
    warehouse = properties.get("warehouse", "")
    if not warehouse or re.match(r"(?!file:)[a-zA-Z][a-zA-Z0-9+.-]*:", warehouse):
        return
    path = Path(re.sub(r"^file:(//)?", "", warehouse))
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path, prefix=".binlogd-probe-"):
            pass
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise SinkUnavailable(f"sink {sink}: can't write warehouse {path}: {reason}") from error
