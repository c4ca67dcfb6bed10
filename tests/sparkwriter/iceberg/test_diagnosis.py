"""What Java says of a failure, and the property of the catalog that is behind it."""

from __future__ import annotations

import pytest

from sparkwriter.iceberg.diagnosis import diagnose

S3 = "software.amazon.awssdk.services.s3.model.S3Exception"
ICEBERG = "org.apache.iceberg.exceptions"


@pytest.mark.parametrize(
    ("cause", "key"),
    [
        (f"{S3}: The provided token has expired. (Service: S3)", "s3.session-token"),
        (f"{S3}: (Service: S3, Status Code: 301, Request ID: null)", "client.region"),
        (f"{S3}: (Service: S3, Status Code: 403, Request ID: null)", "s3.access-key-id"),
        (f"{S3}: (Service: S3, Status Code: 501, Request ID: null)", "s3.endpoint"),
        ("software.amazon.awssdk.core.exception.SdkClientException: Received an"
         " UnknownHostException when attempting to interact with a service.", "s3.endpoint"),
        ("java.lang.NoSuchMethodException: Missing org.apache.iceberg.aws.s3.S3FileIO"
         " [java.lang.ClassNotFoundException: org.apache.iceberg.aws.s3.S3FileIO]", "io-impl"),
        (f"{ICEBERG}.ForbiddenException: Forbidden: not yours", "credential"),
        (f"{ICEBERG}.ServiceUnavailableException: Service unavailable: later", "uri"),
        ("org.postgresql.util.PSQLException: ERROR: permission denied for schema public",
         "jdbc.user"),
        ("java.sql.SQLException: No suitable driver found for jdbc:mysql://h/d", "uri"),
        ("org.apache.hadoop.security.AccessControlException: Permission denied: user=b",
         "warehouse"),
    ],
)  # fmt: skip
def test_a_sign_leads_to_a_key(cause: str, key: str) -> None:
    """The deepest cause need not be the one that tells."""
    told = diagnose([f"java.lang.RuntimeException: {cause}", cause, "java.io.IOException: x"])
    assert told is not None
    assert told.key == key


def test_what_nobody_knows_has_no_diagnosis() -> None:
    """Better none than a wrong one: a store that is slow for a moment is no mistake."""
    assert (
        diagnose([f"{S3}: Please reduce your request rate. (Service: S3, Status Code: 503)"])
        is None
    )
    assert diagnose(["java.lang.NullPointerException: null"]) is None
    assert diagnose([]) is None


def test_the_key_is_one_that_the_configuration_has() -> None:
    """A warehouse that the catalog alone knows, a token instead of a credential."""
    bucket = ["software.amazon.awssdk.services.s3.model.NoSuchBucketException: x"]
    refused = [f"{ICEBERG}.NotAuthorizedException: Not authorized: x"]
    warehouse = diagnose(bucket, {"type": "rest", "uri": "http://h"})
    assert warehouse is not None
    assert warehouse == ("uri", "its warehouse: there is no such bucket")
    token = diagnose(refused, {"token": "abc"})
    assert token is not None
    assert token.key == "token"
