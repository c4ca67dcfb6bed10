"""Decrypts Maxwell's messages: AES in CBC mode, padded by PKCS #7, iv and bytes in base64."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING

import msgspec
from msgspec import Raw, Struct

from changes.formats.engine.layout import Refused

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.algorithms import AES

_KEY_BYTES = (16, 24, 32)
_BLOCK_BYTES = 16

NO_KEY = "encrypted, and no encryption_key is set"


class _Encrypted(Struct):
    iv: str
    bytes: str


class _Envelope(Struct):
    encrypted: _Encrypted


_envelope = msgspec.json.Decoder(_Envelope)
_members = msgspec.json.Decoder(dict[str, Raw])


class Decryptor:
    """Decrypts messages with Maxwell's ``secret_key``. Raises ValueError for an invalid AES key."""

    def __init__(self, key: str) -> None:
        # Imported here, so that a pipeline without encryption need not load it.
        from cryptography.hazmat.primitives.ciphers.algorithms import AES

        secret = key.encode()
        if len(secret) not in _KEY_BYTES:
            raise ValueError(f"encryption_key has {len(secret)} bytes; an AES key has 16, 24 or 32")
        self._aes: AES = AES(secret)

    def decrypted(self, value: bytes) -> bytes:
        """The message with its encrypted members, some or all, in the clear. Raises Refused."""
        try:
            ciphertext = _envelope.decode(value).encrypted
            text = self._decrypted(
                base64.b64decode(ciphertext.bytes), base64.b64decode(ciphertext.iv)
            )
            inner = _members.decode(text)
            outer = _members.decode(value)
        except binascii.Error as error:
            raise Refused(f"encrypted, but not in base64: {error}") from error
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise Refused(f"encrypted, and can't be opened: another key? ({error})") from error
        del outer["encrypted"]
        return msgspec.json.encode(outer | inner)

    def _decrypted(self, ciphertext: bytes, iv: bytes) -> bytes:
        """Raises ValueError."""
        from cryptography.hazmat.primitives.ciphers import Cipher
        from cryptography.hazmat.primitives.ciphers.modes import CBC

        if len(iv) != _BLOCK_BYTES or not ciphertext or len(ciphertext) % _BLOCK_BYTES:
            raise ValueError("not whole blocks")
        decryptor = Cipher(self._aes, CBC(iv)).decryptor()
        padded = decryptor.update(ciphertext) + decryptor.finalize()
        count = padded[-1]
        if not 1 <= count <= _BLOCK_BYTES or padded[-count:] != bytes([count]) * count:
            raise ValueError("the padding is wrong")
        return padded[:-count]
