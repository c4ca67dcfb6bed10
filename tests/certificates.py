"""Certificates made by the tests: an authority, what it signs, and when each of them ends."""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = timedelta(days=1)
HOST = "127.0.0.1"
_KEY_USAGE = x509.KeyUsage(True, False, False, False, False, True, True, False, False)


def self_signed(now: datetime, days: float) -> bytes:
    """A self-signed one, as PEM, that ends so many days after ``now``."""
    key = ec.generate_private_key(ec.SECP256R1())
    made = _began(x509.Name([]), x509.Name([]), key, now + timedelta(days=days), now - DAY)
    return made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


class Authority:
    """Signs certificates, each a file with its key beside it. ``file``: its own, as PEM.

    They name the key they were signed with: from Python 3.13 on, ssl refuses those that don't
    (VERIFY_X509_STRICT).
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._name = folder, name
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._identifier = x509.SubjectKeyIdentifier.from_public_key(self._key.public_key())
        self.file = folder / f"{name}.pem"
        constraints = x509.BasicConstraints(True, None)
        made = self._made(self._key, name, DAY).add_extension(constraints, critical=True)
        made = made.add_extension(_KEY_USAGE, critical=True)
        self._write(self.file, made.add_extension(self._identifier, critical=False))

    def signed(
        self, name: str, ends_in: timedelta = DAY, password: str | None = None
    ) -> tuple[Path, Path]:
        """A certificate for 127.0.0.1 and its key, encrypted if there is a password."""
        key = ec.generate_private_key(ec.SECP256R1())
        cert, secret = self._folder / f"{name}.cert", self._folder / f"{name}.key"
        host = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(HOST))])
        by = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(self._identifier)
        made = self._made(key, name, ends_in).add_extension(host, critical=False)
        self._write(cert, made.add_extension(by, critical=False))
        lock: serialization.KeySerializationEncryption = serialization.NoEncryption()
        if password is not None:
            lock = serialization.BestAvailableEncryption(password.encode())
        form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
        secret.write_bytes(key.private_bytes(*form, lock))
        secret.chmod(0o600)
        return cert, secret

    def _made(
        self, key: ec.EllipticCurvePrivateKey, name: str, ends_in: timedelta
    ) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        return _began(_named(self._name), _named(name), key, now + ends_in, now - 2 * DAY)

    def _write(self, file: Path, made: x509.CertificateBuilder) -> None:
        pem = made.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        file.write_bytes(pem)


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _began(
    by: x509.Name, to: x509.Name, key: ec.EllipticCurvePrivateKey, end: datetime, begin: datetime
) -> x509.CertificateBuilder:
    made = x509.CertificateBuilder(by, to, key.public_key(), x509.random_serial_number())
    return made.not_valid_before(begin).not_valid_after(end)
