"""Sends each batch to an HTTP endpoint as JSON lines, and waits until it is taken.

``[sink.push]`` with ``entry = "http_push:apply"``; ``settings.url`` is the endpoint. The request
carries the target, the offsets and the version, so that the other side can tell a batch that comes
again. An answer of 4xx (but 408 and 429) rejects the batch's rows; anything else that isn't 2xx is
tried again.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

import pyarrow as pa

TIMEOUT_S = 30.0
AGAIN = (408, 429)


def apply(batch: pa.RecordBatchReader, context: Any) -> None:
    """One request for each part of the batch."""
    for part in batch:
        rows = part.to_pylist()
        body = "".join(json.dumps(row, default=str, ensure_ascii=False) + "\n" for row in rows)
        request = urllib.request.Request(
            context.settings["url"],
            body.encode(),
            {
                "Content-Type": "application/x-ndjson",
                "X-Target": context.target,
                "X-Version": str(context.version),
                "X-Offsets": json.dumps(context.lanes),
            },
        )
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S):
                pass
        except urllib.error.HTTPError as error:
            if not 400 <= error.code < 500 or error.code in AGAIN:
                raise
            for row in rows:
                context.reject(row, f"HTTP {error.code}")
