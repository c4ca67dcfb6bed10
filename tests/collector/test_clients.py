"""librdkafka's settings in Java's words."""

from __future__ import annotations

from pathlib import Path

import pytest

from collector.connect.clients import UnfitSettings, java_settings, properties


def test_a_login_becomes_one_line() -> None:
    """A quote or a backslash in a password stays one."""
    found = java_settings({
        "bootstrap.servers": "k:9092", "security.protocol": "sasl_ssl", "fetch.wait.max.ms": 5,
        "sasl.mechanisms": "SCRAM-SHA-512", "sasl.username": "u", "sasl.password": 'a"b\\c',
    })  # fmt: skip
    assert found["security.protocol"] == "SASL_SSL"
    assert found["sasl.mechanism"] == "SCRAM-SHA-512"
    assert found["sasl.jaas.config"].endswith(' required username="u" password="a\\"b\\\\c";')
    assert "fetch.wait.max.ms" not in found


def test_certificates_are_handed_on_as_texts(tmp_path: Path) -> None:
    """So that a connector needs no file of this machine."""
    for name in ("ca", "cert", "key"):
        (tmp_path / name).write_text(f"-----{name}-----\n")
    found = java_settings({
        "bootstrap.servers": "k:9092", "security.protocol": "SSL",
        "ssl.ca.location": str(tmp_path / "ca"), "ssl.certificate.location": str(tmp_path / "cert"),
        "ssl.key.location": str(tmp_path / "key"), "ssl.endpoint.identification.algorithm": "none",
    })  # fmt: skip
    assert found["ssl.truststore.certificates"] == "-----ca-----\n"
    assert found["ssl.keystore.key"] == "-----key-----\n"
    assert found["ssl.endpoint.identification.algorithm"] == ""


@pytest.mark.parametrize(
    "setting",
    [{"sasl.mechanism": "OAUTHBEARER"}, {"ssl.crl.location": "/x"}, {"ssl.ca.location": "/none"}],
)
def test_what_java_has_no_word_for_is_refused(setting: dict[str, str]) -> None:
    """Else its clients would connect otherwise than binlogd's own."""
    with pytest.raises(UnfitSettings):
        java_settings({"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", **setting})


def test_properties_keep_each_value() -> None:
    """Signs that mean something to Java are written so that they do not."""
    assert properties({"a b": " x=\\y\nü€😀"}) == (
        "a\\ b=\\ x\\=\\\\y\\n\\u00fc\\u20ac\\ud83d\\ude00\n"
    )
