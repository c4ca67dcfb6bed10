"""The REST API of Kafka Connect: one question at a time, each bounded in time. Any thread."""

from __future__ import annotations

import base64
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import quote, unquote

from changes.model.printable import reason_of

ANSWER_WITHIN_S = 30.0
"""A connector's check before it is created asks its database, too."""

QUICK_S = 5.0
"""For what asks nothing but the worker."""

BUSY_S = 15.0
"""For what its herder answers, which may wait for a task that ends, 10 s at most."""

_LONGEST = 1 << 22
"""Bytes of an answer."""

State = Literal[
    "RUNNING", "PAUSED", "STOPPED", "FAILED", "UNASSIGNED", "RESTARTING", "DESTROYED", "MISSING"
]


class ConnectError(Exception):
    """A question that Connect does not answer as it should: one line."""


class ConnectAway(ConnectError):
    """No answer now, or one that says that it is busy with its members: ask again later."""


class ConnectRefused(ConnectError):
    """It answers, and refuses."""


class NoSuchConnector(ConnectRefused):
    """It has no connector of that name."""


@dataclass(frozen=True, slots=True)
class ConnectLogin:
    """An address and who asks. ``auth`` is USER:PASSWORD, or empty."""

    url: str
    auth: str = field(default="", repr=False)
    ca: str | None = None


@dataclass(frozen=True, slots=True)
class ConnectorState:
    """A connector and its one task. ``why``: the first line of what a failed one says; ``trace``:
    all of it."""

    connector: State
    task: State | None
    why: str = ""
    trace: str = ""

    @property
    def failed(self) -> bool:
        """Whether the connector or its task has failed."""
        return "FAILED" in (self.connector, self.task)

    @property
    def runs(self) -> bool:
        """Whether its task reads."""
        return self.connector == "RUNNING" and self.task == "RUNNING"


MISSING = ConnectorState("MISSING", None)


class ConnectRest:
    """One Connect cluster. No redirect is followed and no proxy used: the login stays here.
    ``url`` and ``auth`` are those of its login."""

    def __init__(self, login: ConnectLogin) -> None:
        """Asks nothing. Raises ConnectRefused where the certificates can't be read."""
        self.url, self.auth = login.url.rstrip("/"), login.auth
        self._headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if login.auth:
            encoded = base64.b64encode(login.auth.encode()).decode()
            self._headers["Authorization"] = f"Basic {encoded}"
        handlers: list[urllib.request.BaseHandler] = [
            urllib.request.ProxyHandler({}),
            _NoRedirect(),
        ]
        if self.url.startswith("https:"):
            try:
                context = ssl.create_default_context(cafile=login.ca)
            except (OSError, ssl.SSLError) as error:
                raise ConnectRefused(f"{login.ca}: {error}") from error
            handlers.append(urllib.request.HTTPSHandler(context=context))
        self._opener = urllib.request.build_opener(*handlers)

    def version(self) -> str:
        """What it is; proves that the login is taken."""
        found = self._ask("GET", "/", within_s=QUICK_S)
        return str(found.get("version", "")) if isinstance(found, dict) else ""

    def plugins(self) -> frozenset[str]:
        """The classes of the connectors that it has."""
        found = self._ask("GET", "/connector-plugins", within_s=QUICK_S)
        return frozenset(str(each["class"]) for each in found)

    def config(self, name: str) -> dict[str, str] | None:
        """A connector's configuration; None where there is none."""
        try:
            return _texts(self._ask("GET", f"/connectors/{_in_path(name)}/config", within_s=BUSY_S))
        except NoSuchConnector:
            return None

    def create(self, name: str, config: Mapping[str, str], stopped: bool) -> None:
        """Create a connector; ``stopped``: it reads nothing until it is resumed."""
        if not stopped:
            self.put_config(name, config)
            return
        body = {"name": name, "config": dict(config), "initial_state": "STOPPED"}
        self._ask("POST", "/connectors", body)

    def put_config(self, name: str, config: Mapping[str, str]) -> None:
        """Create a connector, or give one that is there another configuration."""
        self._ask("PUT", f"/connectors/{_in_path(name)}/config", dict(config))

    def state(self, name: str) -> ConnectorState:
        """How a connector is."""
        try:
            found = self._ask("GET", f"/connectors/{_in_path(name)}/status", within_s=BUSY_S)
        except NoSuchConnector:
            return MISSING
        return state_of(found)

    def offsets(self, name: str, server: str | None = None) -> dict[str, Any] | None:
        """The position of a connector as Debezium has it; None where it has none yet. ``server``:
        only what it has under this prefix of topics, as it keeps them apart."""
        try:
            found = self._ask("GET", f"/connectors/{_in_path(name)}/offsets", within_s=BUSY_S)
        except NoSuchConnector:
            return None
        each = (
            one.get("offset")
            for one in found.get("offsets", ())
            if server in (None, one.get("partition", {}).get("server"))
        )
        return next((one for one in each if one), None)

    def remove_offsets(self, name: str) -> None:
        """Forget the position of a connector that is stopped."""
        self._ask("DELETE", f"/connectors/{_in_path(name)}/offsets")

    def pause(self, name: str) -> None:
        """Its task stays, and reads nothing."""
        self._ask("PUT", f"/connectors/{_in_path(name)}/pause", within_s=BUSY_S)

    def resume(self, name: str) -> None:
        """It reads again, also where it was stopped."""
        self._ask("PUT", f"/connectors/{_in_path(name)}/resume", within_s=BUSY_S)

    def stop(self, name: str) -> None:
        """It has no task any more, so no connection; its position stays."""
        self._ask("PUT", f"/connectors/{_in_path(name)}/stop", within_s=BUSY_S)

    def restart(self, name: str, only_failed: bool = False) -> None:
        """Its task begins again at its position."""
        query = f"?includeTasks=true&onlyFailed={str(only_failed).lower()}"
        self._ask("POST", f"/connectors/{_in_path(name)}/restart{query}")

    def remove(self, name: str) -> None:
        """Remove a connector. Its position stays. Nothing where there is none."""
        try:
            self._ask("DELETE", f"/connectors/{_in_path(name)}")
        except NoSuchConnector:
            return

    def _ask(
        self, method: str, path: str, body: object = None, within_s: float = ANSWER_WITHIN_S
    ) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}{path}", data, self._headers, method=method)
        try:
            with self._opener.open(request, timeout=within_s) as answer:
                text = answer.read(_LONGEST)
        except urllib.error.HTTPError as error:
            raise _refused(error, path) from error
        except OSError as error:
            reason = getattr(error, "reason", error)
            raise ConnectAway(f"Connect at {self.url} does not answer: {reason}") from error
        try:
            return json.loads(text) if text else None
        except ValueError as error:
            raise ConnectRefused(f"{self.url}{path}: no JSON: is it Connect?") from error


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """A redirect is an error."""
        return None


def _refused(error: urllib.error.HTTPError, path: str) -> ConnectError:
    said = error.read(_LONGEST).decode(errors="replace")
    try:
        message = " ".join(str(json.loads(said)["message"]).split())
    except (ValueError, KeyError, TypeError):
        message = said[:200].strip() or str(error.reason)
    line = f"Connect: HTTP {error.code}: {message}"
    if error.code in (401, 403):
        return ConnectRefused(f"Connect refuses the login (HTTP {error.code})")
    if error.code == 404:
        # A worker that starts knows no path at all, and so says nothing of a connector.
        named = path.removeprefix("/connectors/").partition("/")[0]
        return NoSuchConnector(line) if unquote(named) in message else ConnectAway(line)
    # 409: the group is rebalancing.
    return (
        ConnectAway(line)
        if error.code in (408, 409, 429) or error.code >= 500
        else (ConnectRefused(line))
    )


def state_of(found: Any) -> ConnectorState:
    """The answer to a question for a status."""
    try:
        connector, tasks = found["connector"], found["tasks"]
        parts = [*tasks, connector]
        trace = next((str(p.get("trace", "")) for p in parts if p["state"] == "FAILED"), "")
        task = tasks[0]["state"] if tasks else None
        return ConnectorState(connector["state"], task, reason_in(trace), trace)
    except (TypeError, KeyError, IndexError) as error:
        raise ConnectRefused(f"Connect: no status: {reason_of(error)}") from error


def reason_in(trace: str) -> str:
    """What a stack of Java's exceptions says: the last cause that says anything."""
    lines = [line.strip() for line in trace.splitlines()]
    heads = [line for line in lines if line and not line.startswith(("at ", "..."))]
    said = [line.removeprefix("Caused by: ").partition(": ")[2] for line in heads]
    return next((one for one in reversed(said) if one), heads[0] if heads else "")


def _in_path(name: str) -> str:
    return quote(name, safe="")


def _texts(found: Any) -> dict[str, str]:
    return {str(name): str(value) for name, value in dict(found).items()}
