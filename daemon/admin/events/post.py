"""Posts a document to a webhook, within a bounded time."""

from __future__ import annotations

import http.client
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from types import MappingProxyType
from typing import Any

from changes.model.printable import reason_of
from settings.secrets import MASK

POST_WITHIN_S = 10.0
"""The limit for one delivery in all, however the receiver trickles."""

NONE: Mapping[str, str] = MappingProxyType({})


class NotTaken(Exception):
    """The webhook did not take it: one line."""


def post(address: str, body: bytes, setting: str, headers: Mapping[str, str] = NONE) -> None:
    """Have a body of JSON taken within POST_WITHIN_S. ``setting`` names the address. Raises
    NotTaken, which does not show the address: its path is what one needs to post there.

    A redirect is no delivery: followed, it would be a GET without the event, or lead it to somebody
    whom the configuration does not name.
    """
    try:
        _post(address, body, setting, headers)
    except (OSError, http.client.HTTPException) as error:
        raise NotTaken(reason_of(error).replace(address, MASK)) from error


def _post(address: str, body: bytes, setting: str, headers: Mapping[str, str]) -> None:
    with _cut_off(POST_WITHIN_S) as opener:
        all_ = {"Content-Type": "application/json", **headers}
        request = urllib.request.Request(address, data=body, headers=all_)
        try:
            with opener.open(request, timeout=POST_WITHIN_S):
                pass
        except urllib.error.HTTPError as error:
            error.close()
            if 300 <= error.code < 400:
                raise NotTaken(
                    f"it answers {error.code}, a redirect, which is not followed: "
                    f"set {setting} to where it leads"
                ) from None
            raise NotTaken(f"it answers {error.code}") from None


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """None: the redirect becomes an error."""


@contextmanager
def _cut_off(within_s: float) -> Iterator[urllib.request.OpenerDirector]:
    """An opener whose connections end after so long, whatever the other side sends, also while
    TLS is agreed on."""
    sockets: list[socket.socket] = []
    is_over = threading.Event()

    class Plain(http.client.HTTPConnection):
        def connect(self) -> None:
            super().connect()
            # TLS takes the socket itself over.
            sockets.append(self.sock.dup())
            if is_over.is_set():
                raise TimeoutError("it took too long to connect")

    class Secure(http.client.HTTPSConnection, Plain):
        """Connects as ``Plain`` does, then agrees on TLS."""

    class PlainHandler(urllib.request.HTTPHandler):
        def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
            return self.do_open(Plain, req)

    class SecureHandler(urllib.request.HTTPSHandler):
        def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
            return self.do_open(Secure, req)

    def cut() -> None:
        is_over.set()
        for each in sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(within_s, cut)
    timer.daemon = True
    timer.start()
    try:
        yield urllib.request.build_opener(PlainHandler, SecureHandler, _NoRedirect)
    finally:
        timer.cancel()
        for each in sockets:
            each.close()
