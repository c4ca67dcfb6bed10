"""One HTTP question to a registry, by Confluent's client: addresses, login, TLS.

Each request is sent once to each address: the caller waits before it repeats one. A redirect is not
followed, since it would take the login to an address that nobody has configured.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka.schema_registry.common._httpx_compat import httpx
from confluent_kafka.schema_registry.error import OAuthTokenError
from confluent_kafka.schema_registry.schema_registry_client import _RestClient

from sources.registry.errors import RegistryAway
from sources.registry.section import RegistrySection

_LONGEST = 200
"""Characters of an answer's text that an error shows."""


@dataclass(frozen=True, slots=True)
class Answer:
    """``status`` is 200 or 404: all others are errors."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    url: str


class Http:
    """The client of one registry. Any thread."""

    def __init__(self, section: RegistrySection) -> None:
        """Raises RegistryAway where the login or the certificates can't be used."""
        self._timeout_s = section.timeout_s
        try:
            self._client = _RestClient(_settings(section))
        except (OSError, ssl.SSLError, ValueError) as error:
            raise RegistryAway("refused", f"its TLS or login can't be used: {error}") from error

    def get(self, path: str, query: Mapping[str, str] | None = None) -> Answer:
        """Ask each address until one answers. Raises RegistryAway."""
        headers = {"Accept": "*/*"}
        if self._client.bearer_auth_credentials_source:
            self._bearer(headers)
        away: RegistryAway | None = None
        for url in self._client.base_urls:
            try:
                return self._ask(url, path, headers, query)
            except RegistryAway as error:
                away = error
        assert away is not None  # there is an address
        raise away

    def _bearer(self, headers: dict[str, str]) -> None:
        try:
            self._client.handle_bearer_auth(headers)
        except (OAuthTokenError, httpx.HTTPError, KeyError, ValueError) as error:
            reason = f"no token from {getattr(self._provider, 'token_endpoint', '?')}: {error}"
            raise RegistryAway("refused", reason) from error
        if not headers["target-sr-cluster"]:  # Confluent's cloud alone knows it
            del headers["target-sr-cluster"]

    def _ask(
        self, url: str, path: str, headers: dict[str, str], query: Mapping[str, str] | None
    ) -> Answer:
        try:
            found = self._client.send_http_request(
                url, path, "GET", headers, query=dict(query or {})
            )
        except httpx.TimeoutException as error:
            reason = f"{url} does not answer within {self._timeout_s:g} s"
            raise RegistryAway("timeout", reason) from error
        except httpx.HTTPError as error:
            raise RegistryAway("unreachable", f"{url}: {error or type(error).__name__}") from error
        if found.status_code not in (200, 404):
            raise self._problem(url, found)
        return Answer(found.status_code, found.headers, found.content, f"{url}/{path}")

    def _problem(self, url: str, found: Any) -> RegistryAway:
        status, said = found.status_code, found.text[:_LONGEST]
        if status in (401, 403):
            if self._provider is not None and hasattr(self._provider, "token"):
                self._provider.token = ""  # the next question asks for a new one
            what = "the login is refused" if status == 401 else "reading is not allowed"
            return RegistryAway("refused", f"{url}: {what} (HTTP {status}): {said}")
        if 300 <= status < 400:
            to = found.headers.get("location", "?")
            reason = f"{url} redirects (HTTP {status}), which is not followed: set url to {to}"
            return RegistryAway("redirect", reason)
        if status >= 500 or status in (408, 429):
            return RegistryAway("fault", f"{url}: HTTP {status}: {said}", status)
        return RegistryAway("answer", f"{url}: HTTP {status} is no registry's answer: {said}")

    @property
    def _provider(self) -> Any:
        """What fetches OAuth tokens; None with another login."""
        oauth = self._client.bearer_auth_credentials_source == "OAUTHBEARER"
        return self._client.bearer_field_provider if oauth else None

    def close(self) -> None:
        """Close the connections."""
        self._client.session.close()


def _settings(section: RegistrySection) -> dict[str, Any]:
    """The section in the client's words."""
    found: dict[str, Any] = {
        "url": ",".join(section.urls),
        "timeout": section.timeout_s,
        "max.retries": 0,
        "ssl.ca.location": section.tls_ca,
        "ssl.certificate.location": section.tls_cert,
        "ssl.key.location": section.tls_key,
        "ssl.key.password": section.tls_key_password or None,
        "basic.auth.user.info": section.basic_auth or None,
        **_bearer(section),
    }
    return {key: value for key, value in found.items() if value is not None}


def _bearer(section: RegistrySection) -> dict[str, str]:
    if section.bearer_token:
        return {
            "bearer.auth.credentials.source": "STATIC_TOKEN",
            "bearer.auth.token": section.bearer_token,
            "bearer.auth.logical.cluster": "",
        }
    if (oauth := section.oauth) is None:
        return {}
    found = {
        "bearer.auth.credentials.source": "OAUTHBEARER",
        "bearer.auth.client.id": oauth.client_id,
        "bearer.auth.client.secret": oauth.client_secret,
        "bearer.auth.scope": oauth.scope,
        "bearer.auth.issuer.endpoint.url": oauth.token_url,
        "bearer.auth.logical.cluster": oauth.logical_cluster,
    }
    pool = {"bearer.auth.identity.pool.id": oauth.identity_pool} if oauth.identity_pool else {}
    return found | pool
