"""Which property of a catalog is behind a failure, by what Java says of it. Pure.

Only what a person can mend in the configuration is here; an unknown failure has no diagnosis.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from actors.runtime.java import setup_command


class Diagnosis(NamedTuple):
    """A property of ``[sink.NAME.catalog]``, and what is wrong with it."""

    key: str
    what: str


class _Sign(NamedTuple):
    pattern: str
    key: str
    what: str


_RIGHTS = (
    "has no right to do this in the warehouse: grant s3:PutObject, s3:GetObject and s3:DeleteObject"
)

_STORE = (
    _Sign(
        r'No FileSystem for scheme "s3',
        "io-impl",
        'files of s3:// need "org.apache.iceberg.aws.s3.S3FileIO"',
    ),
    _Sign(
        r"ClassNotFoundException: org\.apache\.iceberg\.aws\.s3\.S3FileIO\b",
        "io-impl",
        f"needs the jars of s3: run `{setup_command('s3')}`",
    ),
    _Sign(r"Cannot initialize FileIO implementation", "io-impl", "no such class is among the jars"),
    _Sign(
        r"Unable to load region",
        "client.region",
        "is missing, and AWS_REGION and the profile name none",
    ),
    _Sign(
        r"region '[^']*' is wrong|authorization header is malformed"
        r"|must be addressed using the specified endpoint|S3Exception.*Status Code: 301",
        "client.region",
        "is not the region of the bucket",
    ),
    _Sign(
        r"Unable to load credentials",
        "s3.access-key-id",
        "is missing, and neither environment, profile nor instance has a key",
    ),
    _Sign(
        r"Access Key Id you provided does not exist",
        "s3.access-key-id",
        "the store has no such key",
    ),
    _Sign(
        r"request signature we calculated does not match",
        "s3.secret-access-key",
        "does not belong to s3.access-key-id",
    ),
    _Sign(
        r"provided token has expired|provided token is malformed|ExpiredToken",
        "s3.session-token",
        "the store takes the token no more",
    ),
    _Sign(
        r"S3Exception: (?:Forbidden )?\(Service: S3, Status Code: 403",
        "s3.access-key-id",
        f"is refused: a wrong key, an expired one, or it {_RIGHTS}",
    ),
    _Sign(
        r"s3\.model\.AccessDeniedException|S3Exception.*Status Code: 403",
        "s3.access-key-id",
        _RIGHTS,
    ),
    _Sign(r"NoSuchBucketException", "warehouse", "there is no such bucket"),
    _Sign(
        r"awssdk.*UnknownHost",
        "s3.endpoint",
        'no such host; a store without a host for each bucket needs s3.path-style-access = "true"',
    ),
    _Sign(r"awssdk.*Unable to execute HTTP request", "s3.endpoint", "no store answers there"),
    _Sign(
        r"S3Exception: \(Service: S3, Status Code: (?:4\d\d|501)",
        "s3.endpoint",
        "what answers there is no S3 store",
    ),
)
"""An object store's. The first sign that is found counts."""

_CATALOG = (
    _Sign(r"No route for request: \w+ v1/v1/", "uri", "leave out /v1 at its end"),
    _Sign(
        r"RESTException: Unable to process \(code: 40[456]|JsonParseException|No route for request",
        "uri",
        "what answers there is no Iceberg REST catalog of version 1",
    ),
    _Sign(r"NoSuchWarehouseException", "warehouse", "the catalog has no such warehouse"),
    _Sign(r"NotAuthorizedException", "credential", "the catalog does not accept it, nor a token"),
    _Sign(
        r"exceptions\.ForbiddenException", "credential", "has no right to do this in the catalog"
    ),
    _Sign(
        r"iceberg\.shaded.*(?:HttpHostConnectException|UnknownHostException)"
        r"|java\.net\.UnknownHostException|Could not connect to meta store",
        "uri",
        "no catalog answers there",
    ),
    _Sign(r"Service(?:Failure|Unavailable)Exception", "uri", "the catalog fails at the moment"),
    _Sign(
        r"PSQLException: .*(?:password authentication failed|no password was provided)",
        "jdbc.password",
        "the database does not accept it for jdbc.user",
    ),
    _Sign(
        r'PSQLException: .*role ".*" does not exist', "jdbc.user", "the database has no such user"
    ),
    _Sign(
        r'PSQLException: .*database ".*" does not exist', "uri", "the server has no such database"
    ),
    _Sign(r"PSQLException: .*permission denied", "jdbc.user", "may not do this in the database"),
    _Sign(
        r"PSQLException: (?:Connection to .* refused|The connection attempt failed)",
        "uri",
        "no database answers there",
    ),
    _Sign(r"No suitable driver", "uri", "no driver of such a database is among spark.jars"),
    _Sign(
        r"AccessControlException: Permission denied", "warehouse", "may not be written by this user"
    ),
    _Sign(r"failed on connection exception", "warehouse", "no name node answers there"),
)


def diagnose(
    causes: Sequence[str], properties: Mapping[str, str] | None = None
) -> Diagnosis | None:
    """What to change, or None.

    ``causes``: each of Java's exceptions as ``class: message``, down to the deepest cause.
    ``properties``: those of the catalog, where they are known.
    """
    said = "\n".join(cause.replace("\n", " ") for cause in causes)
    for sign in (*_STORE, *_CATALOG):
        if re.search(sign.pattern, said):
            found = Diagnosis(sign.key, sign.what)
            return found if properties is None else _fitting(found, properties)
    return None


def _fitting(found: Diagnosis, properties: Mapping[str, str]) -> Diagnosis:
    """The property that this configuration has, where several mean the same."""
    if found.key == "warehouse" and "warehouse" not in properties:
        return Diagnosis("uri", f"its warehouse: {found.what}")
    if found.key == "credential" and "token" in properties:
        return Diagnosis("token", found.what.removesuffix(", nor a token"))
    return found
