"""URLs of databases as values, and how a connection is encrypted."""

from __future__ import annotations

import pytest

from databases.base.url import BadUrl, DatabaseUrl, Tls, is_local, parse_url

GOOD = {
    "postgresql://db/shop": DatabaseUrl("postgresql", (("db", 5432),), "shop"),
    "postgres://db:1/shop": DatabaseUrl("postgresql", (("db", 1),), "shop"),
    "mysql://a:1,b/shop": DatabaseUrl("mysql", (("a", 1), ("b", 3306)), "shop"),
    "mariadb://[::1]:3307": DatabaseUrl("mysql", (("::1", 3307),), ""),
    "postgresql://%2Frun%2Fpostgresql/shop": DatabaseUrl(
        "postgresql", (("/run/postgresql", 5432),), "shop"
    ),
    "jdbc:postgresql://db/shop": DatabaseUrl("postgresql", (("db", 5432),), "shop", is_jdbc=True),
    "jdbc:postgresql://a:1,b/shop?sslmode=verify-full": DatabaseUrl(
        "postgresql", (("a", 1), ("b", 5432)), "shop", "verified", is_jdbc=True
    ),
    "jdbc:mysql://[::1]:3307/": DatabaseUrl("mysql", (("::1", 3307),), "", is_jdbc=True),
    "jdbc:mysql://db?sslMode=REQUIRED": DatabaseUrl(
        "mysql", (("db", 3306),), "", "required", is_jdbc=True
    ),
    "jdbc:mariadb://db/a%20b?sslMode=verify-ca&serverSslCert=/ca": DatabaseUrl(
        "mysql", (("db", 3306),), "a b", "ca", "/ca", is_jdbc=True
    ),
}


@pytest.mark.parametrize("text", GOOD)
def test_what_is_read(text: str) -> None:
    assert parse_url(text) == GOOD[text]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("db/shop", "is not KIND://HOST:PORT/DATABASE"),
        ("oracle://db/shop", "KIND being mysql, mariadb or postgresql"),
        ("jdbc:oracle:thin:@db", "is not KIND://HOST:PORT/DATABASE"),
        ("jdbc:postgres://db/shop?sslmode=disable", "jdbc:postgres is no driver"),
        ("postgresql://db", "names no database"),
        ("postgresql://me:secret@db/shop", "user and password are keys of their own"),
        ("postgresql://db:99999/shop", "99999 is no port"),
        ("postgresql://db:x/shop", "'db:x' is not HOST"),
        ("postgresql:///shop", "'' is not HOST"),
        ("postgresql://db/shop?sslmode=secret", "tls and tls_ca are keys of their own"),
        ("jdbc:postgresql://db/shop?password=secret", "the parameter password is none of"),
        ("jdbc:postgresql://db/shop?sslmode=maybe", "sslmode=maybe is none of"),
        ("jdbc:mariadb://db/?sslMode=-", "sslMode=- is none of disable, trust"),
        ("mysql://db/secret\n", "holds a character that can't be seen"),
        ("postgresql://db/shop%00", "holds a character that can't be seen"),
        ("postgresql://%2Frun%2Cdb.example/shop", "'/run,db.example' is no host"),
    ],
)
def test_what_is_not(text: str, said: str) -> None:
    """One line, and no secret in it."""
    with pytest.raises(BadUrl, match=said) as error:
        parse_url(text)
    assert "secret" not in str(error.value)


@pytest.mark.parametrize(
    ("url", "key", "before", "tls"),
    [
        ("mysql://db/", None, "off", "verified"),
        ("mysql://db/", "off", "preferred", "off"),
        ("mysql://127.0.0.1/", None, "off", "off"),
        ("mysql://[::1]/", None, "off", "off"),
        ("mysql://localhost/", None, "off", "off"),
        ("mysql://%2Frun%2Fs/", None, "off", "off"),
        ("mysql://127.0.0.1/", "verified", "off", "verified"),
        ("jdbc:mysql://db/", None, "off", "off"),
        ("jdbc:mysql://db/", None, "preferred", "preferred"),
        ("jdbc:mysql://db/", "required", "off", "required"),
        ("jdbc:mysql://db/?sslMode=VERIFY_CA", None, "off", "ca"),
        ("jdbc:mysql://db/?sslMode=DISABLED", "verified", "off", "verified"),
    ],
)
def test_how_it_is_encrypted(url: str, key: Tls | None, before: Tls, tls: Tls) -> None:
    """By the key, by a JDBC URL's parameter, else verified; plain on this machine alone. A JDBC
    URL of before that says nothing goes on as it was."""
    (login,) = parse_url(url).logins("u", "p", key, before=before)
    assert login.tls == tls


@pytest.mark.parametrize(
    ("url", "key", "tls", "warns"),
    [
        ("mysql://127.0.0.1/", None, "verified", False),
        ("mysql://%2Frun%2Fs/", None, "off", False),
        ("mysql://localhost/", "off", "off", True),
        ("mysql://db/", "required", "required", True),
        ("mysql://db/", "verified", "verified", False),
        ("mysql://db/", None, "verified", False),
        ("jdbc:mysql://db/?sslMode=REQUIRED", None, "required", True),
    ],
)
def test_an_authority_is_looked_at(url: str, key: Tls | None, tls: Tls, warns: bool) -> None:
    """Or it is said that it is not: through a tunnel the server is on this machine, too."""
    found = parse_url(url)
    (login,) = found.logins("u", "p", key, "ca.pem")
    assert login.tls == tls
    line = found.unread_ca(key, "ca.pem")
    assert (line is not None and 'tls = "verified"' in line) is warns
    assert found.unread_ca(key, None) is None


def test_each_host_is_looked_at_by_itself() -> None:
    """A plain one beside it makes no other one plain."""
    logins = parse_url("postgresql://localhost,db/shop").logins("u", "p")
    assert [one.tls for one in logins] == ["off", "verified"]


def test_names_of_other_machines_are_not_this_one() -> None:
    """Whatever they begin with."""
    assert not any(map(is_local, ("localhost.example.com", "127.0.0.1.example.com", "10.0.0.1")))


@pytest.mark.parametrize(
    ("url", "key", "warns"),
    [
        ("jdbc:mysql://db/", None, True),
        ("jdbc:mysql://db/", "off", False),
        ("jdbc:mysql://db/?sslMode=DISABLED", None, False),
        ("jdbc:mysql://127.0.0.1/", None, False),
        ("mysql://db/", None, False),
    ],
)
def test_a_file_of_before_has_a_release_to_say_it(url: str, key: Tls | None, warns: bool) -> None:
    """With the lines that it may write."""
    line = parse_url(url).says_no_tls(key)
    assert (line is not None and 'tls = "verified"' in line and 'tls = "off"' in line) is warns
