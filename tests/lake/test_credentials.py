"""Where the credentials of a lake may come from: each opens it, and none is shown anywhere."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.lake.check import configuration, run_check
from tests.lake.guard import CatalogGuard, StoreGuard
from tests.lake.lakes import LAKES, Lake

pytestmark = [pytest.mark.long, pytest.mark.integration, pytest.mark.timeout(300)]

KEYS = ("s3.access-key-id", "s3.secret-access-key")
NOWHERE = {"AWS_EC2_METADATA_DISABLED": "true", "AWS_PROFILE": "", "AWS_ACCESS_KEY_ID": ""}


def chains(lake: Lake, folder: Path) -> dict[str, tuple[str, Mapping[str, str]]]:
    """Sources outside the configuration: the key that is used, and the environment."""
    profiles = folder / "credentials"
    profiles.write_text(
        "[default]\naws_access_key_id = other-key\naws_secret_access_key = other-secret\n"
        "[lake]\naws_access_key_id = profile-key\naws_secret_access_key = profile-secret\n"
    )
    return {
        "environment": (
            "environment-key",
            {"AWS_ACCESS_KEY_ID": "environment-key", "AWS_SECRET_ACCESS_KEY": "environment-secret"},
        ),
        "profile": (
            "profile-key",
            {"AWS_SHARED_CREDENTIALS_FILE": str(profiles), "AWS_PROFILE": "lake"},
        ),
        "instance": (
            "test-key",  # what moto's instances have
            {"AWS_EC2_METADATA_SERVICE_ENDPOINT": f"http://{lake.servers['storage'].address}"},
        ),
    }


@pytest.mark.parametrize("source", ["environment", "profile", "instance"])
def test_a_key_that_the_configuration_does_not_have(source: str, tmp_path: Path) -> None:
    """It is found where Amazon's tools find it; no other is tried at the store."""
    with ExitStack() as stack:
        lake = stack.enter_context(LAKES["rest-s3"](tmp_path / "lake"))
        key, environment = chains(lake, tmp_path)[source]
        guard = stack.enter_context(StoreGuard(lake.servers["storage"].address, key))
        catalog = {k: v for k, v in lake.catalog.items() if k not in KEYS}
        catalog["s3.endpoint"] = guard.url
        file = configuration({"lake": catalog}, tmp_path)
        problems, said = run_check(file, environment)
        assert problems == [], said
        assert guard.let_in == {key}
        assert not guard.broken
        assert not any(f"{source}-{what}" in said for what in ("secret", "key"))


def test_keys_and_tokens_of_the_configuration(tmp_path: Path) -> None:
    """As text, from a file, a token, and a credential for which the catalog gives a token."""
    (tmp_path / "id").write_text("key-of-a-file\n")
    (tmp_path / "secret").write_text("secret-of-a-file\n")
    with ExitStack() as stack:
        lake = stack.enter_context(LAKES["rest-s3"](tmp_path / "lake"))
        store, rest = lake.servers["storage"].address, lake.servers["catalog"].address
        static = stack.enter_context(StoreGuard(store, "static-key"))
        of_file = stack.enter_context(StoreGuard(store, "key-of-a-file"))
        token = stack.enter_context(CatalogGuard(rest, "a-token-of-ours"))
        credential = stack.enter_context(CatalogGuard(rest, "client-credentials-token:"))
        right = dict(lake.catalog)
        catalogs = {
            "static": right
            | {"s3.endpoint": static.url}
            | dict(zip(KEYS, ("static-key", "static-secret"), strict=True)),
            "file": right
            | {"s3.endpoint": of_file.url}
            | dict(zip(KEYS, ("${file:id}", "${file:secret}"), strict=True)),
            "token": right | {"uri": token.url, "token": "a-token-of-ours"},
            "credential": right | {"uri": credential.url, "credential": "our-name:our-secret"},
        }
        problems, said = run_check(configuration(catalogs, tmp_path))
        assert problems == [], said
        assert (static.let_in, of_file.let_in) == ({"static-key"}, {"key-of-a-file"})
        assert token.let_in > 0
        assert credential.let_in > 0
        secrets = ("static-key", "static-secret", "key-of-a-file", "secret-of-a-file")
        secrets += ("a-token-of-ours", "our-secret")
        assert [secret for secret in secrets if secret in said] == []
