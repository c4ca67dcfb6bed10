"""JDBC's URLs as values."""

from __future__ import annotations

import pytest

from sparkwriter.sql.base.url import BadUrl, JdbcUrl, parse_url

GOOD = {
    "jdbc:postgresql://db/shop": JdbcUrl("postgresql", (("db", 5432),), "shop"),
    "jdbc:postgresql://a:1,b/shop?sslmode=verify-full": JdbcUrl(
        "postgresql", (("a", 1), ("b", 5432)), "shop", "verify-full"
    ),
    "jdbc:mysql://[::1]:3307/": JdbcUrl("mysql", (("::1", 3307),), ""),
    "jdbc:mysql://db?sslMode=REQUIRED": JdbcUrl("mysql", (("db", 3306),), "", "require"),
    "jdbc:mariadb://db/a%20b?sslMode=verify-ca&serverSslCert=/ca": JdbcUrl(
        "mariadb", (("db", 3306),), "a b", "verify-ca", "/ca"
    ),
}


@pytest.mark.parametrize("text", GOOD)
def test_what_is_read(text: str) -> None:
    assert parse_url(text) == GOOD[text]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("postgresql://db/shop", "is not jdbc:KIND"),
        ("jdbc:oracle://db/shop", "jdbc:oracle is none of"),
        ("jdbc:postgresql://db", "names no database"),
        ("jdbc:postgresql://me:secret@db/shop", "user and password are keys of their own"),
        ("jdbc:postgresql://db:99999/shop", "99999 is no port"),
        ("jdbc:postgresql://db:x/shop", "'db:x' is not HOST"),
        ("jdbc:postgresql:///shop", "'' is not HOST"),
        ("jdbc:postgresql://db/shop?password=secret", "the parameter password is none of"),
        ("jdbc:postgresql://db/shop?sslmode=maybe", "sslmode=maybe is none of"),
        ("jdbc:mysql://db?sslMode=VERIFY_CA", "sslMode needs serverSslCert"),
    ],
)
def test_what_is_not(text: str, said: str) -> None:
    """One line, and no secret in it."""
    with pytest.raises(BadUrl, match=said) as error:
        parse_url(text)
    assert "secret" not in str(error.value)
