"""Builds Maxwell's encrypted messages, and those about statements."""

from __future__ import annotations

import base64
import json
from typing import Any

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CBC
from cryptography.hazmat.primitives.padding import PKCS7

from changes.formats.engine.format import pack, unpack
from tests.changes.formats.json_messages import as_json, maxwell

KEY = "0123456789abcdef"
"""By which they are encrypted."""

INNER = {"data": {"id": 2, "name": "b"}, "old": {"id": 1}}


def encrypted(inner: bytes) -> dict[str, str]:
    """What Maxwell makes of a text by the key."""
    iv = bytes(range(16))
    padder = PKCS7(128).padder()
    encryptor = Cipher(AES(KEY.encode()), CBC(iv)).encryptor()
    padded = padder.update(inner) + padder.finalize()
    return {
        "iv": base64.b64encode(iv).decode(),
        "bytes": base64.b64encode(encryptor.update(padded) + encryptor.finalize()).decode(),
    }


DATA_HIDDEN = maxwell("update", encrypted=encrypted(as_json(INNER)))
"""encrypt=data: ``data`` and ``old`` are hidden, the rest is not."""
ALL_HIDDEN = pack(
    None,
    as_json({"encrypted": encrypted(unpack(maxwell("update", *INNER.values())).value or b"")}),
)
"""encrypt=all: a message that shows nothing."""


def statement(kind: str, sql: str | None, **members: Any) -> bytes:
    told: dict[str, Any] = {"type": kind, "database": "shop", "table": "orders", "sql": sql}
    return pack(None, json.dumps(told | {"ts": 1477053126000} | members).encode())
