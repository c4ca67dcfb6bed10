"""Reads secrets for a configuration, and keeps them out of all output.

A value may be ``${file:/path}`` or ``${credential:NAME}`` (a file in ``$CREDENTIALS_DIRECTORY``,
which systemd fills from ``LoadCredential=``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

MASK = "***"

SHORTEST = 4
"""Characters. Shorter secrets are not masked: masking every ``ab`` would leave nothing to read.
``check-config`` warns of one."""

LONGEST_BYTES = 1 << 20
"""A key or a certificate chain is some kilobytes. A larger file is the wrong one."""

_SECRET_KEY = re.compile(
    r"password|passphrase|secret|token|mask_salt|credential|sasl\.jaas|(^|[.\-_])key", re.I
)
_NOT_SECRET_KEY = re.compile(r"(location|path|file|url|uri|class|id|type|algorithm)$", re.I)
_EMBEDDED = (
    re.compile(r'(?:password|secret|token)\s*=\s*"([^"]+)"', re.I),
    re.compile(r"[?&;](?:password|secret|token)=([^&;\s]+)", re.I),
    re.compile(r"://[^/@:\s]*:([^/@\s]+)@"),
)


class SecretMissing(Exception):
    """A secret can't be read: one line with the place and the reason, never with the content."""


def looks_secret(key: str) -> bool:
    """Whether a setting of that name holds a secret, as far as the name shows."""
    if re.search(r"access[.\-_]?key[.\-_]?id$", key, re.I):
        return True
    return bool(_SECRET_KEY.search(key)) and not _NOT_SECRET_KEY.search(key)


def secrets_in(settings: Mapping[str, Any]) -> Iterator[str]:
    """The secrets among settings: values of settings with such names, passwords in URIs and JAAS
    lines."""
    for key, value in settings.items():
        if isinstance(value, int) and not isinstance(value, bool) and looks_secret(key):
            yield str(value)  # a password of digits, written without quotes
        if isinstance(value, str):
            if looks_secret(key):
                yield value
            for pattern in _EMBEDDED:
                yield from pattern.findall(value)


def read_secret(kind: str, name: str, environment: Mapping[str, str], folder: Path) -> str:
    """The content of a secret's file, without the newline at its end. Raises SecretMissing.

    ``kind`` is ``file`` (relative paths count from ``folder``) or ``credential``.
    """
    if kind == "credential":
        directory = environment.get("CREDENTIALS_DIRECTORY")
        if not directory:
            raise SecretMissing(
                f"credential {name}: CREDENTIALS_DIRECTORY is not set (systemd sets it for a "
                "service with LoadCredential=)"
            )
        if "/" in name or name in (".", ".."):
            raise SecretMissing(f"credential {name}: a name is wanted, not a path")
        path = Path(directory) / name
    else:
        path = folder / name
    try:
        with path.open("rb") as file:
            content = file.read(LONGEST_BYTES + 1)
        text = content.decode("utf-8").removesuffix("\n").removesuffix("\r")
    except OSError as error:
        raise SecretMissing(f"{kind} {path}: can't be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SecretMissing(f"{kind} {path}: is not UTF-8 text") from error
    if len(content) > LONGEST_BYTES:
        raise SecretMissing(f"{kind} {path}: is larger than {LONGEST_BYTES} bytes")
    if not text:
        raise SecretMissing(f"{kind} {path}: is empty")
    return text


class Redactor:
    """Replaces known secrets by ``***`` in all output. Any thread."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets: list[str] = []
        self.learn(secrets)

    def learn(self, secrets: Iterable[str]) -> None:
        """Replace these, too, from now on."""
        known = {s for secret in secrets for s in _forms(secret) if len(s) >= SHORTEST}
        # The longest first: one secret may be a part of another.
        known.update(self._secrets)
        self._secrets = sorted(known, key=lambda secret: (-len(secret), secret))

    def text(self, text: str) -> str:
        """The text without secrets."""
        for secret in self._secrets:
            if secret in text:
                text = text.replace(secret, MASK)
        return text

    def deep(self, value: Any) -> Any:
        """The same value with every text in it redacted; keys stay."""
        if not self._secrets:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {key: self.deep(inner) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self.deep(inner) for inner in value]
        if value is None or isinstance(value, bool | int | float):
            return value
        return self.text(str(value))


def _forms(secret: str) -> tuple[str, ...]:
    """The secret itself, and as ``repr`` and JSON spell it."""
    return secret, repr(secret)[1:-1], json.dumps(secret)[1:-1]
