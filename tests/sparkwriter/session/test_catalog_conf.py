"""What a catalog gets that its configuration does not say."""

from __future__ import annotations

import pytest

from sparkwriter.session.spark_conf import catalog_defaults

BOUNDS = {"rest.client.socket-timeout-ms", "jdbc.socketTimeout"}


@pytest.mark.parametrize(
    ("properties", "bounds"),
    [
        ({"type": "rest", "uri": "http://catalog"}, {"rest.client.socket-timeout-ms"}),
        ({"type": "jdbc", "uri": "jdbc:postgresql://db/c"}, {"jdbc.socketTimeout"}),
        ({"type": "jdbc", "uri": "jdbc:mariadb://db/c"}, {"jdbc.socketTimeout"}),
        ({"type": "jdbc", "uri": "jdbc:mysql://db/c"}, {"jdbc.socketTimeout"}),
        ({"type": "jdbc", "uri": "jdbc:sqlite:file:c"}, set[str]()),
        ({"type": "hive", "uri": "thrift://metastore"}, set[str]()),
    ],
)
def test_no_client_waits_without_end(properties: dict[str, str], bounds: set[str]) -> None:
    """REST's and the databases' would; SQLite asks nobody, Hive's has a bound."""
    options = {
        key.removeprefix("spark.sql.catalog.lake.") for key in catalog_defaults("lake", properties)
    }
    assert options & BOUNDS == bounds
