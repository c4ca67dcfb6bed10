"""When certificates and tokens of the configuration end. Read again while the daemon runs.

Only what can be read without a password is looked at: PEM files, and tokens that are JWTs.
"""

from __future__ import annotations

import base64
import binascii
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import structlog
from cryptography import x509

from actors.runtime.mailbox import Clock
from daemon.admin.status.document import Credential
from daemon.config.pipelines import PipelineSection
from sparkwriter.sections import AnySink

EVERY_S = 300.0
"""Between two looks. A file that was replaced is seen after this time at the latest."""

Read = Callable[[], float | None]
"""Gives the end, Unix seconds; None: it has none. Raises OSError, ValueError."""


def credentials(
    kafka: Mapping[str, Any],
    pipelines: Mapping[str, PipelineSection],
    sinks: Mapping[str, AnySink],
) -> dict[str, Read]:
    """What has an end, by the key of the configuration that names it."""
    tables = [("kafka", kafka)]
    tables += [(f"pipeline.{name}.kafka", each.kafka) for name, each in pipelines.items()]
    tables += [(f"sink.{name}", each.settings()) for name, each in sinks.items()]
    found: dict[str, Read] = {}
    for prefix, settings in tables:
        for key, value in settings.items():
            if key in ("ssl.certificate.location", "ssl.ca.location") and value:
                found[f"{prefix}.{key}"] = _of_file(Path(str(value)), key == "ssl.ca.location")
            elif key == "catalog.token" and isinstance(value, str) and value.count(".") == 2:
                found[f"{prefix}.{key}"] = _of_token(value)
    return found


def _of_file(path: Path, authorities: bool) -> Read:
    return lambda: end_of_certificates(path.read_bytes(), authorities)


def _of_token(token: str) -> Read:
    return lambda: end_of_token(token)


def end_of_certificates(pem: bytes, authorities: bool) -> float | None:
    """When the first of the certificates ends. Of authorities the last one counts: a bundle holds
    old ones, too. Raises ValueError."""
    found = x509.load_pem_x509_certificates(pem)
    ends = [certificate.not_valid_after_utc.timestamp() for certificate in found]
    return (max if authorities else min)(ends, default=None)


def end_of_token(token: str) -> float | None:
    """The ``exp`` of a JWT. Raises ValueError where it is none."""
    body = token.split(".")[1]
    try:
        claims = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    except binascii.Error as error:
        raise ValueError(str(error)) from error
    end = claims.get("exp") if isinstance(claims, dict) else None
    return float(end) if isinstance(end, int | float) else None


class Expiry:
    """The ends that are known. ``figures`` may be called from any thread."""

    def __init__(self, read: Mapping[str, Read], clock: Clock = time.monotonic) -> None:
        self._read = read
        self._clock = clock
        self._lock = threading.Lock()
        self._last: tuple[float, list[Credential]] | None = None
        self._log = structlog.get_logger().bind(actor="monitor")

    def figures(self) -> list[Credential]:
        """The document's member ``credentials``."""
        with self._lock:
            now = self._clock()
            if self._last is None or now - self._last[0] >= EVERY_S:
                self._last = (now, [*self._look()])
            return self._last[1]

    def _look(self) -> Iterator[Credential]:
        for name, read in self._read.items():
            try:
                end = read()
            except (OSError, ValueError) as error:
                # The client that uses it reports a file that it can't use.
                self._log.debug("end_not_known", credential=name, reason=str(error))
                continue
            if end is not None:
                yield {"credential": name, "expires_ms": int(end * 1000)}
