"""Settings of Kafka's clients in Java's words, from those of librdkafka in ``[kafka]``. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

Value = str | int | float | bool

_SAME = (
    "bootstrap.servers", "security.protocol", "ssl.endpoint.identification.algorithm",
    "sasl.kerberos.service.name", "client.dns.lookup",
)  # fmt: skip
_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
_CONNECTION = ("security.", "sasl.", "ssl.", "enable.ssl.", "enable.sasl.")

SECRET = ("sasl.jaas.config", "ssl.keystore.key", "ssl.key.password")
"""Of what ``java_settings`` gives: shown nowhere."""


class UnfitSettings(ValueError):
    """Settings of librdkafka that Java's clients can't be given: one line, without a value."""


def java_settings(kafka: Mapping[str, Value]) -> dict[str, str]:
    """The connection's settings. Reads the files of certificates. Raises UnfitSettings."""
    given = {name: str(value) for name, value in kafka.items()}
    found = {name: given[name] for name in _SAME if name in given}
    if "security.protocol" in found:
        found["security.protocol"] = found["security.protocol"].upper()
    if found.get("ssl.endpoint.identification.algorithm") == "none":
        found["ssl.endpoint.identification.algorithm"] = ""
    found |= _login(given)
    found |= _certificates(given)
    known = {*_SAME, *_LOGIN, *_FILES, "ssl.key.password", "ssl.ca.pem"}
    unknown = sorted(n for n in given.keys() - known if n.startswith(_CONNECTION))
    if unknown:
        raise UnfitSettings(
            f"kafka: {', '.join(unknown)}: the worker's clients have no such setting; give theirs "
            "by [connect] kafka = { … }"
        )
    return found


_LOGIN = (
    "sasl.mechanism", "sasl.mechanisms", "sasl.username", "sasl.password",
)  # fmt: skip
_FILES = ("ssl.ca.location", "ssl.certificate.location", "ssl.key.location")


def _login(given: Mapping[str, str]) -> dict[str, str]:
    if "SASL" not in given.get("security.protocol", "").upper():
        return {}
    mechanism = given.get("sasl.mechanisms") or given.get("sasl.mechanism") or "GSSAPI"
    if mechanism not in _MODULES:
        raise UnfitSettings(
            f"kafka: sasl.mechanism {mechanism} is not handed on to the worker's clients; give "
            'theirs by [connect] kafka = { "sasl.mechanism" = …, "sasl.jaas.config" = … }'
        )
    user, password = given.get("sasl.username", ""), given.get("sasl.password", "")
    jaas = f"{_MODULES[mechanism]} required username={_quoted(user)} password={_quoted(password)};"
    return {"sasl.mechanism": mechanism, "sasl.jaas.config": jaas}


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _certificates(given: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    if ca := given.get("ssl.ca.location"):
        found |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": _read(ca)}
    if certificate := given.get("ssl.certificate.location"):
        found |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": _read(certificate),
            "ssl.keystore.key": _read(given.get("ssl.key.location", certificate)),
        }
        if password := given.get("ssl.key.password"):
            found["ssl.key.password"] = password
    return found


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UnfitSettings(f"kafka: {path} can't be read: {error}") from error


def properties(values: Mapping[str, str]) -> str:
    """The text of a file that Java reads as properties: each value comes back as it is."""
    return "".join(f"{_escaped(name)}={_escaped(value)}\n" for name, value in values.items())


def _escaped(text: str) -> str:
    ends = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
    return "".join(
        ends.get(sign) or (f"\\{sign}" if sign in "\\ =:#!" else _utf16(sign)) for sign in text
    )


def _utf16(sign: str) -> str:
    if " " <= sign <= "~":
        return sign
    units = sign.encode("utf-16-be")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
