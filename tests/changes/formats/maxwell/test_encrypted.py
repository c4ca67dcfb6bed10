"""Maxwell's encrypted messages: opened by the key, or refused with what is wrong."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CBC
from cryptography.hazmat.primitives.padding import PKCS7

from changes.formats.engine.format import RowChange, pack, unpack
from changes.model.model import OP, BadMessage, BadRecord, Kind, TableName
from tests.changes.formats.json_messages import as_json, decode, made, maxwell, rows

KEY = "0123456789abcdef"
MAXWELL = "maxwell-json"
INNER = {"data": {"id": 2, "name": "b"}, "old": {"id": 1}}


def encrypted(inner: bytes, key: str = KEY) -> dict[str, str]:
    iv = bytes(range(16))
    padder = PKCS7(128).padder()
    encryptor = Cipher(AES(key.encode()), CBC(iv)).encryptor()
    padded = padder.update(inner) + padder.finalize()
    return {
        "iv": base64.b64encode(iv).decode(),
        "bytes": base64.b64encode(encryptor.update(padded) + encryptor.finalize()).decode(),
    }


def of_data(**members: Any) -> bytes:
    """encrypt=data: ``data`` and ``old`` are hidden, the rest is not."""
    return maxwell("update", encrypted=encrypted(as_json(INNER)), **members)


def of_all() -> bytes:
    """encrypt=all: a message that shows nothing."""
    value = unpack(maxwell("update", INNER["data"], INNER["old"])).value
    assert value is not None
    return pack(None, as_json({"encrypted": encrypted(value)}))


@pytest.mark.parametrize("value", [of_data(), of_all()], ids=["data", "all"])
def test_opened_by_the_key(value: bytes) -> None:
    """With the key both kinds are rows like any other, the change of key included."""
    assert made(MAXWELL, encryption_key=KEY).peek(value).table == TableName("shop", "orders")
    found = rows(MAXWELL, value, value, encryption_key=KEY)
    assert [(row[OP], row["id"], row["name"]) for row in found] == [
        ("D", "1", None),
        ("U", "2", "b"),
    ] * 2
    (change,) = made(MAXWELL, encryption_key=KEY).explain(value)
    assert isinstance(change, RowChange)
    assert change.before == {"id": 1, "name": "b"}


def test_without_a_key() -> None:
    """Where the table is told, its record is refused; where nothing is told, the message is."""
    assert made(MAXWELL).peek(of_data()).kind is Kind.ROWS
    with pytest.raises(BadRecord, match=r"encrypted, and no encryption_key is set"):
        decode(MAXWELL, of_data())
    with pytest.raises(BadMessage, match=r"encrypted, and no encryption_key is set"):
        made(MAXWELL).peek(of_all())


@pytest.mark.parametrize("key", ["fedcba9876543210", "0123456789abcdef" * 2])
def test_another_key(key: str) -> None:
    """A wrong key is told as one: what comes out of it is no message."""
    with pytest.raises(BadMessage, match="can't be opened: another key"):
        made(MAXWELL, encryption_key=key).explain(of_data())


@pytest.mark.parametrize(
    "broken",
    [
        {"iv": "AA==", "bytes": encrypted(b"{}")["bytes"]},
        {"iv": encrypted(b"{}")["iv"], "bytes": "AAAA"},
        {"iv": encrypted(b"{}")["iv"], "bytes": ""},
        {"iv": "!", "bytes": "x"},
        {"iv": 1},
        [],
    ],
)
def test_broken_envelopes(broken: Any) -> None:
    """What is not iv and bytes of whole blocks is refused."""
    with pytest.raises(BadMessage, match="encrypted"):
        made(MAXWELL, encryption_key=KEY).explain(maxwell("insert", encrypted=broken))


def test_key_of_a_wrong_length() -> None:
    """A key that AES does not have is found when the configuration is read."""
    with pytest.raises(ValueError, match="encryption_key has 5 bytes; an AES key has 16, 24 or 32"):
        made(MAXWELL, encryption_key="short")
