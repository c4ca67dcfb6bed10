"""The ways by which a gate is told: a mark in a folder, a message in a topic, a webhook."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from actors.runtime.files import sync, write_durably
from changes.model.printable import json_text, reason_of
from daemon.admin.events.post import NotTaken, post
from daemon.config.config import Config
from daemon.config.gates import topic_settings
from offsets.gate_record import SUCCESS, Notice, iso
from sources.base.port import Outgoing
from sources.base.topics import NotSent
from sources.opening import topics_at

MARK = "_SUCCESS"
"""The file that schedulers look for in the folder of a partition."""

MARKED = ("gate", "from", "through", "version", "tables")
"""The members of a notification that the mark has, too."""


class NotDelivered(Exception):
    """Not all notifications were taken: one line. ``taken``: how many were, the first ones."""

    def __init__(self, reason: str, taken: int = 0) -> None:
        super().__init__(reason)
        self.taken = taken


class Way(Protocol):
    """One thread's. ``most``: so many notifications are delivered in one step."""

    name: str
    most: int

    def deliver(self, notices: Sequence[Notice]) -> None:
        """Have them taken, in order. Raises NotDelivered."""
        ...


class SuccessFolder:
    """Leaves ``_SUCCESS`` in the folder of each partition that is closed."""

    name, most = SUCCESS, 1

    def __init__(self, folder: Path, gate: str) -> None:
        self._folder, self._gate = folder, gate

    def deliver(self, notices: Sequence[Notice]) -> None:
        """See ``Way``. The folder itself must be there: it may be a mount that is away."""
        for notice in notices:
            try:
                if notice.kind == "reopened":
                    self.remove(notice.begin_ms)
                else:
                    self._leave(notice)
            except OSError as error:
                raise NotDelivered(reason_of(error)) from error

    def remove(self, begin_ms: int) -> None:
        """Have a partition's folder hold no mark. Raises OSError."""
        mark = self._place(begin_ms) / MARK
        if mark.exists():
            mark.unlink()
            sync(mark.parent)

    def _leave(self, notice: Notice) -> None:
        self._folder.stat()  # not made: what is mounted there may be away
        place = self._place(notice.begin_ms)
        place.mkdir(parents=True, exist_ok=True)
        for folder in (self._folder, place.parent):  # its name outlasts a crash, too
            sync(folder)
        document = notice.document
        text = {each: document[each] for each in MARKED} | {"closed": document["at"]}
        write_durably(place / MARK, json_text(text, indent=1) + "\n", shared=True)

    def _place(self, begin_ms: int) -> Path:
        return self._folder / self._gate / iso(begin_ms)


class GateTopic:
    """Sends a message for each, keyed by the gate."""

    name, most = "topic", 100

    def __init__(self, settings: Mapping[str, Any], topic: str) -> None:
        self._settings, self._topic = settings, topic

    def deliver(self, notices: Sequence[Notice]) -> None:
        """See ``Way``. One key is one partition, so those that arrive are the first ones."""
        records = (
            Outgoing(self._topic, None, n.document["gate"].encode(), body_of(n), ())
            for n in notices
        )
        try:
            topics_at(self._settings).sender().send(records)
        except NotSent as error:
            raise NotDelivered(str(error), error.arrived) from error


class GateWebhook:
    """Posts each to an address."""

    name, most = "webhook", 1

    def __init__(self, address: str, secret: str, setting: str) -> None:
        self._address, self._secret, self._setting = address, secret, setting

    def deliver(self, notices: Sequence[Notice]) -> None:
        """See ``Way``."""
        for notice in notices:
            body = body_of(notice)
            headers = signed(body, self._secret, int(time.time())) if self._secret else {}
            try:
                post(self._address, body, self._setting, headers)
            except NotTaken as error:
                raise NotDelivered(str(error)) from error


def body_of(notice: Notice) -> bytes:
    """The same bytes each time that it is sent."""
    return json.dumps(notice.document).encode()


def signed(body: bytes, secret: str, now_s: int) -> dict[str, str]:
    """Headers by which a receiver knows who sent a body, and when."""
    found = hmac.new(secret.encode(), b"%d.%s" % (now_s, body), hashlib.sha256)
    return {
        "X-Binlogd-Timestamp": str(now_s),
        "X-Binlogd-Signature": f"sha256={found.hexdigest()}",
    }


def ways_of(config: Config, gate: str) -> list[Way]:
    """Those that a gate has, in the order of its section's ``ways``."""
    section = config.gates[gate]
    made: dict[str, Callable[[], Way]] = {
        SUCCESS: lambda: SuccessFolder(Path(section.success), gate),
        "topic": lambda: GateTopic(topic_settings(section, config.kafka), section.topic),
        "webhook": lambda: GateWebhook(
            section.webhook, section.webhook_secret, f"gates.{gate}.webhook"
        ),
    }
    return [made[way]() for way in section.ways]
