"""Proxies that let in who has the right key alone: moto takes any, the tests' REST catalog, too."""

from __future__ import annotations

import re

from tests.lake.proxy import Asked, Proxy, Status

REFUSED = Status(
    403,
    "<Error><Code>InvalidAccessKeyId</Code>"
    "<Message>The AWS Access Key Id you provided does not exist in our records.</Message></Error>",
)


def _header(asked: Asked, name: str) -> str:
    return next((value for key, value in asked.headers if key.lower() == name), "")


class StoreGuard(Proxy):
    """In front of an object store."""

    def __init__(self, upstream: str, key: str) -> None:
        """``key``: the access key id that is let in; it may be changed at any time."""
        super().__init__(upstream)
        self.key = key
        self.let_in: set[str] = set()
        """The keys that were used rightly."""
        self.rule = self._check

    def _check(self, asked: Asked) -> Status | None:
        found = re.search(r"Credential=([^/]+)/", _header(asked, "authorization"))
        if found is None or found[1] != self.key:
            return REFUSED
        self.let_in.add(found[1])
        return None


class CatalogGuard(Proxy):
    """In front of a REST catalog: a bearer's token, as given or as the catalog itself gave it."""

    def __init__(self, upstream: str, token: str) -> None:
        """``token``: what the one that is let in begins with."""
        super().__init__(upstream)
        self.token = token
        self.let_in = 0
        self.rule = self._check

    def _check(self, asked: Asked) -> Status | None:
        if asked.path.endswith("/oauth/tokens"):
            return None
        if not _header(asked, "authorization").startswith(f"Bearer {self.token}"):
            return Status(401, '{"error": {"message": "no", "type": "NotAuthorized", "code": 401}}')
        self.let_in += 1
        return None
