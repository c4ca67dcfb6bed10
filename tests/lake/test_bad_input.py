"""A lake that is configured wrongly: ``check-config --connect`` names what to change, in a line.

One run of the command tries every case: each is a sink of its own, behind real servers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from tests.lake.check import configuration, run_check
from tests.lake.lakes import LAKES, Lake
from tests.lake.proxy import Asked, Proxy, Rule, Status
from tests.lake.servers.postgresql import CatalogDatabase

pytestmark = [pytest.mark.long, pytest.mark.integration, pytest.mark.timeout(300)]

PASSWORD = "the-passw0rd-of-the-catalog"
SECRETS = ("anybodys-key", PASSWORD, "wrong-passw0rd")

CASES = {
    "region": (
        "catalog.client.region: is not the region of the bucket",
        "the region 'us-east-1' is wrong; expecting 'eu-west-1'",
    ),
    "no_region": ("catalog.client.region: is missing",),
    "no_key": ("catalog.s3.access-key-id: is missing", "can't write to the warehouse"),
    "unknown_key": ("catalog.s3.access-key-id: the store has no such key",),
    "wrong_key": ("catalog.s3.secret-access-key: does not belong to s3.access-key-id",),
    "bucket": ("catalog.warehouse: there is no such bucket", "NoSuchBucketException"),
    "no_write": (
        "catalog.s3.access-key-id: has no right to do this in the warehouse",
        "Access Denied",
        "can't write to the warehouse",
    ),
    "no_read": ("catalog.s3.access-key-id: has no right", "can't read from the warehouse"),
    "no_delete": ("catalog.s3.access-key-id: has no right", "can't delete from the warehouse"),
    "closed_store": ("catalog.s3.endpoint: no store answers there", "Connection refused"),
    "no_store": ("catalog.s3.endpoint: what answers there is no S3 store",),
    "no_io": ('catalog.io-impl: files of s3:// need "org.apache.iceberg.aws.s3.S3FileIO"',),
    "closed_catalog": ("catalog.uri: no catalog answers there",),
    "other_version": ("catalog.uri: what answers there is no Iceberg REST catalog of version 1",),
    "no_catalog": ("catalog.uri: what answers there is no Iceberg REST catalog of version 1",),
    "v1_twice": ("catalog.uri: leave out /v1 at its end",),
    "token": ("catalog.token: the catalog does not accept it",),
    "two_warehouses": (
        "catalog.warehouse: is s3://elsewhere/w, but the catalog puts tables below"
        " s3://lake/warehouse: say the same, or leave it out",
    ),
    "foreign": (
        "target foreign.shop.theirs: the table exists and was not made by binlogd:"
        " give the route another target, or rename or drop that table",
    ),
    "password": (
        "catalog.jdbc.password: the database does not accept it for jdbc.user",
        'password authentication failed for user "keeper"',
    ),
    "no_database": ("catalog.uri: the server has no such database", '"lakes" does not exist'),
    "closed_database": ("catalog.uri: no database answers there",),
    "no_metastore": ("catalog.uri: no catalog answers there",),
}
"""By the sink's name: what its line says."""


def error(code: str, message: str, status: int) -> Status:
    """An object store's answer."""
    return Status(status, f"<Error><Code>{code}</Code><Message>{message}</Message></Error>")


DENIED = error("AccessDenied", "Access Denied", 403)
STORES: dict[str, Rule] = {
    "region": lambda asked: error(
        "AuthorizationHeaderMalformed",
        "The authorization header is malformed; the region 'us-east-1' is wrong;"
        " expecting 'eu-west-1'",
        400,
    ),
    "unknown_key": lambda asked: error(
        "InvalidAccessKeyId",
        "The AWS Access Key Id you provided does not exist in our records.",
        403,
    ),
    "wrong_key": lambda asked: error(
        "SignatureDoesNotMatch",
        "The request signature we calculated does not match the signature you provided.",
        403,
    ),
    "no_write": lambda asked: DENIED if asked.method == "PUT" else None,
    "no_read": lambda asked: DENIED if asked.method == "GET" else None,
    "no_delete": lambda asked: DENIED if asked.method == "DELETE" else None,
}
"""What a store answers that moto does not: it takes any key and region."""


def next_version(asked: Asked) -> Status | None:
    """A catalog that knows the routes of another version alone."""
    if asked.path.startswith("/v1/"):
        return Status(404, "<html><body>only /v2/ is here</body></html>")
    return None


def no_token(asked: Asked) -> Status:
    """A catalog that wants another token."""
    told = {"message": "who are you?", "type": "NotAuthorizedException", "code": 401}
    return Status(401, str({"error": told}).replace("'", '"'))


class Said(NamedTuple):
    """What the command said."""

    problems: list[str]
    all: str


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Said]:
    """One run over a sink for each case, and one that is right."""
    folder = tmp_path_factory.mktemp("bad")
    with ExitStack() as stack:
        lake = stack.enter_context(LAKES["rest-s3"](folder / "lake"))
        database = stack.enter_context(CatalogDatabase())
        ask_for_a_password(database)
        catalogs = {"right": dict(lake.catalog)}
        catalogs |= of_stores(lake, folder, stack)
        catalogs |= of_catalogs(lake, stack)
        catalogs |= of_databases(lake, database)
        assert catalogs.keys() == CASES.keys() | {"right"}
        make_theirs(lake)
        targets = {"shop.theirs": "foreign.{database}.{table}", "shop.*": "right.a.{table}"}
        yield Said(*run_check(configuration(catalogs, folder, targets)))


def of_stores(lake: Lake, folder: Path, stack: ExitStack) -> dict[str, dict[str, str]]:
    """Catalogs in SQLite, whose storage is wrong."""
    store = lake.servers["storage"]
    found = {}

    def case(name: str, without: str = "", **changed: str) -> None:
        kept = {k: v for k, v in lake.catalog.items() if not (without and without in k)}
        own = {
            "type": "jdbc",
            "uri": f"jdbc:sqlite:{folder / name}.db",
            "jdbc.schema-version": "V1",
            "warehouse": "s3://lake/warehouse",
        }
        found[name] = kept | own | {k.replace("_", "."): v for k, v in changed.items()}

    for name, rule in STORES.items():
        proxy = stack.enter_context(Proxy(store.address))
        proxy.rule = rule
        case(name, s3_endpoint=proxy.url)
    case("no_region", without="region")
    case("no_key", without="key")
    case("bucket", warehouse="s3://lakee/warehouse")
    case("closed_store", s3_endpoint="http://127.0.0.1:1")
    case("no_store", s3_endpoint=lake.catalog["uri"])
    case("no_io", without="io-impl")
    return found


def of_catalogs(lake: Lake, stack: ExitStack) -> dict[str, dict[str, str]]:
    """Catalogs that are not what their configuration says, of REST and Hive."""
    right = dict(lake.catalog)
    later = stack.enter_context(Proxy(lake.servers["catalog"].address))
    later.rule = next_version
    strict = stack.enter_context(Proxy(lake.servers["catalog"].address))
    strict.rule = no_token
    return {
        "closed_catalog": right | {"uri": "http://127.0.0.1:1"},
        "other_version": right | {"uri": later.url},
        "no_catalog": right | {"uri": right["s3.endpoint"]},
        "v1_twice": right | {"uri": right["uri"] + "/v1"},
        "token": right | {"uri": strict.url, "token": "an-old-token"},
        "two_warehouses": right | {"warehouse": "s3://elsewhere/w"},
        "foreign": right,
        "no_metastore": right | {"type": "hive", "uri": "thrift://127.0.0.1:1"},
    }


def of_databases(lake: Lake, database: CatalogDatabase) -> dict[str, dict[str, str]]:
    """Catalogs in PostgreSQL."""
    right = dict(lake.catalog) | {
        "type": "jdbc",
        "uri": database.uri,
        "jdbc.schema-version": "V1",
        "jdbc.user": "keeper",
        "jdbc.password": PASSWORD,
        "warehouse": "s3://lake/warehouse",
    }
    return {
        "password": right | {"jdbc.password": "wrong-passw0rd"},
        "no_database": right | {"uri": database.uri.replace("/postgres", "/lakes")},
        "closed_database": right | {"uri": "jdbc:postgresql://127.0.0.1:1/postgres"},
    }


def ask_for_a_password(database: CatalogDatabase) -> None:
    """Have the server let nobody in as ``keeper`` without it."""
    server = database.server
    server.ask(f"CREATE ROLE keeper LOGIN PASSWORD '{PASSWORD}'")
    ((name,),) = server.ask("SHOW hba_file").rows
    rules = Path(name)
    rules.write_text("host all keeper 127.0.0.1/32 scram-sha-256\n" + rules.read_text())
    server.ask("SELECT pg_reload_conf()")


def make_theirs(lake: Lake) -> None:
    """A table that another engine made."""
    catalog = load_catalog("theirs", **lake.catalog)
    catalog.create_namespace("shop")
    catalog.create_table("shop.theirs", Schema(NestedField(1, "id", LongType())))


@pytest.mark.parametrize("name", CASES)
def test_the_key_to_change_is_named(said: Said, name: str) -> None:
    """One line for each sink, with the reason and the key."""
    own = re.compile(rf"sink[. ]{name}[.:]")
    (line,) = [each for each in said.problems if own.match(each)]
    for part in CASES[name]:
        assert part in line


def test_nothing_else_is_said(said: Said) -> None:
    """The sink that is right has no line, no case has two, and none is a stack trace."""
    assert len(said.problems) == len(CASES), said.all
    assert "Traceback" not in said.all
    assert "\tat " not in said.all


def test_no_secret_is_said(said: Said) -> None:
    """Not in problems, warnings or the log."""
    assert [secret for secret in SECRETS if secret in said.all] == []
