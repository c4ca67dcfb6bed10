"""Keeps a registry's schemas on the disk: asks for those that pipelines need, on its own threads.

A file is written once and never changed. Where the registry has another schema under its number
later, a note is put beside it (``.second``): then nothing is decoded with the kept one until the
registry has the first again, in this run and in later ones.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import msgspec
import structlog

from actors.contract.addresses import Address
from actors.runtime.files import make_private_folder, sync, write_durably
from actors.runtime.periodic import Periodic
from changes.formats.wire.schemas import Reference, Schema, SchemaFolder, SchemaId
from sources.registry.client import RegistryClient, open_client
from sources.registry.errors import RegistryAway, SchemaNotFound, SchemaUnfit
from sources.registry.schedule import Answers, Schedule
from sources.registry.section import RegistrySection

AT_ONCE = 4
"""Questions side by side. A registry that takes five seconds an answer gives 48 schemas a minute;
more would be a burden that no start needs."""

IDLE_S = 5.0
"""Without anything due the thread looks up this often; who wants a schema wakes it."""


class SchemaKeeper:
    """One for each registry and process. ``want`` from any thread."""

    def __init__(
        self,
        name: str,
        section: Callable[[], RegistrySection],
        folder: Path,
        tell: Callable[[Address, object], None],
    ) -> None:
        """``section`` is read again where the registry refuses the login. ``tell`` is called on the
        keeper's thread."""
        self._name, self._section, self._tell = name, section, tell
        first = section()
        self._store = SchemaStore(folder, first.urls)
        self._schedule = Schedule(name, first.not_found_s, first.check_every_s)
        self._lock = threading.Lock()
        self._client: RegistryClient | None = None
        self._pool = ThreadPoolExecutor(AT_ONCE, f"registry-{name}")
        self._log = structlog.get_logger().bind(actor=f"registry-{name}")
        self._rounds = Periodic(
            f"registry-{name}", self._round, self._wait_s, f"registry-{name}", "registry_not_asked"
        )

    def start(self) -> None:
        """Begin to ask."""
        self._rounds.start()

    def close(self) -> None:
        """Ask no more. A question under way ends by its own limit of time."""
        self._rounds.close()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def want(self, user: Address, identities: Iterable[SchemaId]) -> tuple[SchemaId, ...]:
        """See ``actors.contract.ports.Schemas``."""
        now, found = time.monotonic(), []
        with self._lock:
            for identity in identities:
                kept = self._store.usable(identity)
                self._schedule.want(user, identity, kept=kept, now=now)
                if kept:
                    found.append(identity)
            state = self._schedule.state_for(user)
        self._send(state)
        self._rounds.wake()
        return tuple(found)

    def forget(self, user: Address) -> None:
        """An actor has ended."""
        with self._lock:
            self._schedule.forget(user)

    # --- on the keeper's thread

    def _wait_s(self) -> float:
        with self._lock:
            next_at = self._schedule.next_at()
        return IDLE_S if next_at is None else min(IDLE_S, max(0.0, next_at - time.monotonic()))

    def _round(self) -> None:
        while not self._rounds.closed:
            with self._lock:
                due = self._schedule.take_due(time.monotonic(), AT_ONCE)
            if not due:
                return
            for answered in self._pool.map(self._ask, due):
                with self._lock:
                    out = answered(time.monotonic())
                self._send(out)
            if self._schedule.away is not None:
                self._reopen()

    def _send(self, messages: Answers) -> None:
        for to, message in messages:
            self._tell(to, message)

    def _reopen(self) -> None:
        """The next question reads the login and the certificates again: they are rotated."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _opened(self) -> RegistryClient:
        with self._lock:
            if self._client is None:
                self._client = open_client(self._section())
            return self._client

    # --- on one of the pool's threads

    def _ask(self, identity: SchemaId) -> Callable[[float], Answers]:
        """Ask for one schema, and keep or compare it. Returns what the schedule is to hear."""
        schedule = self._schedule
        try:
            fetched = self._opened().fetch(identity)
            second = self._store.keep(identity, fetched)
        except RegistryAway as error:
            self._log.warning("registry_away", schema=str(identity), reason=str(error))
            return partial(schedule.failed, identity, error)
        except SchemaNotFound as error:
            reason = f"registry {self._name} does not have it: {error}"
            return partial(schedule.not_found, identity, reason)
        except SchemaUnfit as error:
            return partial(schedule.unfit, identity, f"registry {self._name}: {error}")
        except OSError as error:
            away = RegistryAway("fault", f"schema {identity} can't be stored: {error}")
            self._log.error("schema_not_kept", schema=str(identity), reason=str(error))
            return partial(schedule.failed, identity, away)
        except Exception as error:  # otherwise it would never be requested again
            self._log.exception("registry_not_asked", schema=str(identity))
            return partial(schedule.failed, identity, RegistryAway("answer", repr(error)))
        if second is not None:
            self._log.error("schema_changed", schema=str(identity), reason=second)
            return partial(schedule.changed, identity, f"registry {self._name}: {second}")
        return partial(schedule.kept, identity)


class SchemaStore:
    """The folder of one registry's schemas, as its one writer sees it. Any thread."""

    def __init__(self, folder: Path, addresses: Sequence[str] = ()) -> None:
        """``addresses``: the registry's; none for a folder that one run alone uses."""
        self._folder = folder
        self._origin = _Origin(folder, addresses) if addresses else None

    def _kept(self, identity: SchemaId) -> Schema | None:
        """As it is on the disk now: the folder may be removed while all pipelines stand still.
        Raises OSError, ValueError."""
        return SchemaFolder(self._folder).get(identity)

    def usable(self, identity: SchemaId) -> bool:
        """Whether a schema is kept, is of the registry at these addresses, and not known to have a
        second meaning."""
        try:
            kept = self._kept(identity) is not None and not self._note(identity).exists()
            return kept and not (self._origin is not None and self._origin.doubts(identity))
        except (OSError, ValueError):  # damaged: it is fetched again, or that fetch reports why not
            return False

    def keep(self, identity: SchemaId, fetched: Schema) -> str | None:
        """Keep a schema, durably. Returns why it can't be: another one is kept. Raises OSError."""
        make_private_folder(self._folder)
        path, note = self._folder / identity.file_name, self._note(identity)
        try:
            kept = self._kept(identity)
        except ValueError:
            kept = None
        if kept is None:
            write_durably(path, msgspec.json.encode(fetched).decode())
        elif not says_the_same(kept, fetched):
            write_durably(note, msgspec.json.encode(fetched).decode())
            return (
                f"schema {identity} is another one than before (the kept one is in {path}, the "
                f"registry's now in {note}). The registry was emptied, and its numbers have a "
                "second meaning: what was written before can't be distinguished from what was "
                "written since. Restore the registry's first schemas"
            )
        if note.exists():
            note.unlink()
            sync(self._folder)
        if self._origin is not None:
            self._origin.trust(identity)
        return None

    def _note(self, identity: SchemaId) -> Path:
        return self._folder / f"{identity.file_name}.second"


class _Origins(msgspec.Struct):
    """``unsure``: the files of schemas that were kept while there were other addresses."""

    addresses: list[str]
    unsure: list[str]


class _Origin:
    """Which registry the kept schemas are of: behind other addresses there may be another one, with
    the same numbers. Then each is used once it was compared. Any thread."""

    def __init__(self, folder: Path, addresses: Sequence[str]) -> None:
        self._folder, self._addresses = folder, list(addresses)
        self._file = folder.with_name(f"{folder.name}.addresses.json")
        self._lock = threading.Lock()
        self._found: _Origins | None = None

    def doubts(self, identity: SchemaId) -> bool:
        """Whether a kept schema may be another registry's. Raises OSError."""
        with self._lock:
            return identity.file_name in self._known().unsure

    def trust(self, identity: SchemaId) -> None:
        """The registry has a schema as it is kept. Raises OSError."""
        with self._lock:
            known, name = self._known(), identity.file_name
            if name in known.unsure:
                left = [each for each in known.unsure if each != name]
                self._write(_Origins(self._addresses, left))

    def _known(self) -> _Origins:
        if self._found is not None:
            return self._found
        try:
            found = msgspec.json.decode(self._file.read_bytes(), type=_Origins)
        except FileNotFoundError:
            found = _Origins(self._addresses, [])
        except msgspec.DecodeError:  # damaged: it vouches for none
            found = _Origins([], [])
        if not set(found.addresses) & set(self._addresses):
            found.unsure = sorted(each.name for each in self._folder.glob("*.json"))
        self._write(_Origins(self._addresses, found.unsure))
        assert self._found is not None
        return self._found

    def _write(self, found: _Origins) -> None:
        make_private_folder(self._file.parent)
        write_durably(self._file, msgspec.json.encode(found).decode())
        self._found = found


def says_the_same(one: Schema, other: Schema) -> bool:
    """Whether two schemas decode alike as far as their texts show: Avro's and JSON's without the
    spaces between, Protobuf's as they are."""
    if one.kind != other.kind:
        return False
    if one.fingerprint == other.fingerprint:
        return True
    return one.kind != "PROTOBUF" and _meaning(one) == _meaning(other)


def _meaning(schema: Schema | Reference) -> object:
    name = schema.name if isinstance(schema, Reference) else None
    try:
        text: object = msgspec.json.decode(schema.text)
    except msgspec.DecodeError:
        text = schema.text
    return name, text, sorted((_meaning(each) for each in schema.references), key=repr)
