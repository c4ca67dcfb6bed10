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
from urllib.parse import unquote

MASK = "***"

SHORTEST = 4
"""Characters. Shorter secrets are not masked: masking every ``ab`` would leave nothing to read.
``check-config`` warns of one."""

LINE = 16
"""Characters. A shorter line of a key is no line of its own in any log."""

LONGEST_BYTES = 1 << 20
"""A key or a certificate chain is some kilobytes. A larger file is the wrong one."""

_SECRET_KEY = re.compile(
    r"password|passwd|(^|[^a-z])pwd|passphrase|secret|token|salt$|credential|sasl\.jaas|"
    r"authorization|bearer|basic[.\-_]auth$|cookie|signature|webhook|api[.\-_]?key|access[.\-_]?key|"
    r"private[.\-_]?key|account[.\-_]?key|(^|[.\-_])key|(^|[.\-_])headers?[.\-_]",
    re.I,
)
_NOT_SECRET_KEY = re.compile(
    r"(location|path|file|url|uri|class|id|type|algorithm|enabled|provider|expires?(in)?)$", re.I
)
_WORD = r"(?:password|passwd|pwd|passphrase|secret|token|api[_-]?key|access[_-]?key|sig)"
_EMBEDDED = (
    re.compile(rf'{_WORD}["\']?\s*[=:]\s*"((?:[^"\\]|\\.)+)"', re.I),
    re.compile(rf"{_WORD}[\"']?\s*[=:]\s*'((?:[^'\\]|\\.|'')+)'", re.I),
    re.compile(rf"{_WORD}\s*=\s*([^\s&;,'\"]+)", re.I),
    re.compile(r"\b(?:bearer|basic)\s+([A-Za-z0-9._~+/=-]{8,})", re.I),
    re.compile(r"://[^:/?#\s]*:([^\s\"'<>]+)@"),
    re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----\s*(.+?)\s*-----END", re.S),
    re.compile(r"\b(eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*)"),
)
"""Secrets within texts: assignments as of JAAS, libpq and URLs, headers, users in addresses,
private keys, JSON web tokens."""

_NO_SECRETS = frozenset({"true", "false", "none", "null", "yes", "no"})


class SecretMissing(Exception):
    """A secret can't be read: one line with the place and the reason, never with the content."""


def looks_secret(key: str) -> bool:
    """Whether a setting of that name holds a secret, as far as the name shows."""
    if re.search(r"access[.\-_]?key[.\-_]?id$", key, re.I):
        return True
    return bool(_SECRET_KEY.search(key)) and not _NOT_SECRET_KEY.search(key)


def secrets_in(settings: Mapping[str, Any]) -> Iterator[str]:
    """The secrets among settings: all that is below a setting with such a name, in tables and lists
    as well, and what is embedded in other texts."""
    yield from _below(settings, False)


def _below(value: Any, hidden: bool) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _below(inner, hidden or looks_secret(str(key)))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _below(inner, hidden)
    elif isinstance(value, str):
        if hidden and value.lower() not in _NO_SECRETS:
            yield value
        yield from embedded_secrets(value)
    elif hidden and isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)  # a password of digits, written without quotes


def embedded_secrets(text: str) -> Iterator[str]:
    """The secrets within a text of any kind: connection strings, headers, addresses, keys."""
    for pattern in _EMBEDDED:
        for found in pattern.findall(text):
            if found.lower() in _NO_SECRETS:
                continue
            yield found
            yield re.sub(r"\\(.)", r"\1", found)  # as it is where quotes are undone


def embedded_secrets_of(value: Any) -> Iterator[str]:
    """Of all texts of a document, whatever their keys."""
    if isinstance(value, str):
        yield from embedded_secrets(value)
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from embedded_secrets_of(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from embedded_secrets_of(inner)


def masked(text: str) -> str:
    """A text of others, a log or an error, without what looks like a secret."""
    for pattern in _EMBEDDED:
        text = pattern.sub(lambda found: found.group().replace(found.group(1), MASK), text)
    return text


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
            raise SecretMissing(f"credential {name}: a name is required, not a path")
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
        self._numbers: frozenset[str] = frozenset()
        self.learn(secrets)

    def learn(self, secrets: Iterable[str]) -> None:
        """Replace these, too, from now on."""
        known = {s for secret in secrets for s in _forms(secret)}
        # The longest first: one secret may be a part of another.
        known.update(self._secrets)
        self._secrets = sorted(known, key=lambda secret: (-len(secret), secret))
        self._numbers = frozenset(secret for secret in known if secret.isdecimal())

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
            return MASK if self._numbers and str(value) in self._numbers else value
        return self.text(str(value))


def _forms(secret: str) -> Iterator[str]:
    """The secret itself; as ``repr``, JSON and addresses spell it; the lines of one that has
    several, which a log may show one by one."""
    forms = {secret, unquote(secret), repr(secret)[1:-1], json.dumps(secret)[1:-1]}
    yield from (form for form in forms if len(form) >= SHORTEST)
    if "\n" in secret:
        lines = (line.strip() for line in secret.splitlines())
        yield from (line for line in lines if len(line) >= LINE and not line.startswith("-----"))
