"""The machine's certificate authorities as a file that Java reads.

A Java that isn't the distribution's trusts a list of its own. Behind a proxy with its own
authority, which pip and everything else on the machine trust, such a Java can fetch nothing.
"""

from __future__ import annotations

import hashlib
import ssl
import struct
from collections.abc import Sequence
from pathlib import Path

PASSWORD = "changeit"
"""Java's customary one. It guards nothing: what is inside is public."""

_BUNDLE = Path("/etc/ssl/certs/ca-certificates.crt")
_MAGIC, _VERSION, _CERTIFICATE = 0xFEEDFEED, 2, 2


def write_truststore(path: Path) -> bool:
    """Write the authorities that this machine trusts; False, and no file, where it names none."""
    context = ssl.create_default_context()
    if _BUNDLE.exists():
        context.load_verify_locations(_BUNDLE)
    certificates = context.get_ca_certs(binary_form=True)
    if certificates:
        path.write_bytes(truststore(certificates))
    return bool(certificates)


def truststore(certificates: Sequence[bytes]) -> bytes:
    """Give a JKS key store of these certificates (DER); every Java reads it."""
    parts = [struct.pack(">III", _MAGIC, _VERSION, len(certificates))]
    for number, certificate in enumerate(certificates):
        parts.append(struct.pack(">I", _CERTIFICATE) + _text(f"ca{number}"))
        parts.append(struct.pack(">q", 0) + _text("X.509"))
        parts.append(struct.pack(">I", len(certificate)) + certificate)
    content = b"".join(parts)
    # The format's own seal: the password, a constant of its authors', the content.
    seal = hashlib.sha1(PASSWORD.encode("utf-16-be") + b"Mighty Aphrodite" + content).digest()
    return content + seal


def _text(text: str) -> bytes:
    encoded = text.encode()
    return struct.pack(">H", len(encoded)) + encoded
