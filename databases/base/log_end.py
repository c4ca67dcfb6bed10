"""What a server says of its log at a moment, and what messages say of theirs. Pure.

A message's position counts only where it is from the very server that was queried, and where the
order of positions is that of the log. What can't be compared is ``NoEnd``, with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from changes.model.digits import is_digits
from changes.model.places import Place
from databases.base.gtid_sets import GtidSet, is_within, mariadb_set, mysql_set

_MYSQL_GTID = re.compile(r"([0-9a-fA-F-]{36}):([0-9]{1,19})")
_MARIADB_GTID = re.compile(r"([0-9]{1,10})-([0-9]{1,10})-([0-9]{1,20})")


ReaderPosition = Mapping[str, object]
"""Where a source's reader has its position, in Debezium's words: all that was in the source's log
before it is in the topics. Empty where there is no such reader, or it does not tell."""


class NoEnd(Struct, frozen=True, tag="none"):
    """Positions tell nothing here."""

    why: str
    committing: tuple[str, ...] = ()

    def unlike(self, places: Sequence[Place]) -> str:
        """The reason."""
        return self.why

    def is_before(self, place: Place) -> bool:
        """Never known."""
        return False

    def is_of(self, position: ReaderPosition) -> bool:
        """Never known."""
        return False

    def was_read(self, position: ReaderPosition) -> bool:
        """Never known."""
        return False


class BinlogEnd(Struct, frozen=True, tag="binlog"):
    """Of a server of MySQL's kind.

    ``server``: MySQL's UUID, MariaDB's number. ``last``: the highest number of a transaction that
    is in the log, in MySQL of its own (under an empty name), in MariaDB by domain. ``file`` and
    ``pos``: where the log ends; empty where that is unknown. ``committing``: transactions that may
    be in the log and not be visible yet, as far as the server tells them by name. ``executed``: all
    transactions in it, as the server prints them; empty where that is unknown. ``replicates``: it
    applies another server's changes, or that is unknown: then it may lack what messages tell.
    """

    server: str
    last: Mapping[str, int]
    file: str = ""
    pos: int = 0
    committing: tuple[str, ...] = ()
    mariadb: bool = False
    executed: str = ""
    replicates: str = ""

    def unlike(self, places: Sequence[Place]) -> str:
        """Why messages that were in the topics before this moment are not this server's; empty
        where they are. One at least must be."""
        if self.replicates:
            return self.replicates
        numbered = [(place, found) for place in places if (found := _number(place)) is not None]
        if not numbered:
            return "the log's last messages tell no GTID"
        for place, found in numbered:
            if found.server != self.server:
                return f"the log has the transaction {place.gtid}, of another server than is read"
            if found.number > self.last.get(found.domain, 0) or self._has(place) is False:
                return f"the server has no such transaction yet: {place.gtid}"
        # A new file says nothing of those who are still committing what is in the former one.
        if self.mariadb and not any(place.file == self.file for place, _ in numbered):
            return f"the log's last messages have nothing of the server's file {self.file}"
        return ""

    def is_before(self, place: Place) -> bool:
        """Whether a message's transaction came into the log after this moment, and so everything
        that was visible then is before it: by its number, and by its place in the same files."""
        found = _number(place)
        if found is None or found.server != self.server:
            return False
        return found.number > self.last.get(found.domain, 0) and self._has(place) is False

    def is_of(self, position: ReaderPosition) -> bool:
        """Whether all that a reader has read is in this log: it reads no other server's."""
        # A new file says nothing of those who are still committing what is in the former one.
        if self.mariadb and position.get("file") != self.file:
            return False
        read, mine = self._set(position.get("gtids")), self._set(self.executed)
        return bool(read) and is_within(read, mine)

    def was_read(self, position: ReaderPosition) -> bool:
        """Whether a reader at this position has read all that was visible at this moment."""
        if not self.executed:
            return False
        mine = self._set(",".join((self.executed, *self.committing)))
        read = self._set(position.get("gtids"))
        # MariaDB's numbers may go back (gtid_seq_no): a higher one proves nothing by itself.
        if self.mariadb and not self._is_behind(position):
            return bool(mine) and all(read.get(name) == last for name, last in mine.items())
        return bool(mine) and is_within(mine, read)

    def _is_behind(self, position: ReaderPosition) -> bool:
        place = _whole(position.get("pos"))
        return position.get("file") == self.file and place is not None and place >= self.pos

    def _set(self, text: object) -> GtidSet:
        try:
            return (mariadb_set if self.mariadb else mysql_set)(str(text or ""))
        except ValueError:
            return {}  # another server's words

    def _has(self, place: Place) -> bool | None:
        """Whether a place is before the end; None where it can't be compared."""
        if not self.file or place.file is None or place.pos is None:
            return None
        mine, its = file_number(self.file), file_number(place.file)
        if mine is None or its is None or mine[0] != its[0]:
            return None
        return (its[1], place.pos) < (mine[1], self.pos)


class WalEnd(Struct, frozen=True, tag="wal"):
    """Of PostgreSQL, where it replicates no other one: where its log ends. ``committing``: the
    transactions that have written and are not over."""

    lsn: int
    committing: tuple[str, ...] = ()

    def unlike(self, places: Sequence[Place]) -> str:
        """See ``BinlogEnd``."""
        numbers = [place.lsn for place in places if place.lsn is not None]
        if not numbers:
            return "the log's last messages tell no LSN"
        if (last := max(numbers)) > self.lsn:
            return f"the log has the LSN {last}, and the server is at {self.lsn}: it is another one"
        return ""

    def is_before(self, place: Place) -> bool:
        """Whether a message's change was written after this moment, and so committed after it.

        Messages come in the order of the commits, and a change is written before its commit: so
        what had been committed at this moment is before it. (The LSNs of messages do not grow.)
        """
        return place.lsn is not None and place.lsn > self.lsn

    def is_of(self, position: ReaderPosition) -> bool:
        """See ``BinlogEnd``."""
        found = [place for name in _WAL_PLACES if (place := _whole(position.get(name))) is not None]
        return bool(found) and max(found) <= self.lsn

    def was_read(self, position: ReaderPosition) -> bool:
        """See ``BinlogEnd``. The numbers of commits do grow in the log's order."""
        read = _whole(position.get("lsn_commit"))
        return read is not None and read >= self.lsn


LogEnd = NoEnd | BinlogEnd | WalEnd


NOT_ASKED = NoEnd("the server was not queried")


def compared(end: LogEnd, places: Sequence[Place], position: ReaderPosition) -> LogEnd:
    """The end, if the reader's position of before it is this server's, or messages that were in
    the topics before it are."""
    why = "" if end.is_of(position) else end.unlike(places)
    return NoEnd(why) if why else end


class _Number(NamedTuple):
    server: str
    domain: str
    number: int


def _number(place: Place) -> _Number | None:
    if place.gtid is None:
        return None
    if found := _MYSQL_GTID.fullmatch(place.gtid):
        return _Number(found[1].lower(), "", int(found[2]))
    if found := _MARIADB_GTID.fullmatch(place.gtid):
        return _Number(found[2], found[1], int(found[3]))
    return None


def file_number(file: str) -> tuple[str, int] | None:
    """A binary log's file, as its name and number; None where it has none."""
    name, _, number = file.rpartition(".")
    return (name, int(number)) if name and is_digits(number) else None


_WAL_PLACES = ("lsn", "lsn_proc", "lsn_commit")


def _whole(value: object) -> int | None:
    return int(str(value)) if is_digits(str(value)) else None


# What a server of MySQL's kind prints.


def owned(text: str) -> Iterable[str]:
    """The transactions in ``@@GLOBAL.gtid_owned``: ``UUID:8#10:9#11,UUID:TAG:1#12``."""
    for group in re.sub(r"\s", "", text, flags=re.ASCII).split(","):
        prefix, *rest = group.split(":")
        for part in rest:
            if "#" in part:
                yield f"{prefix}:{part.partition('#')[0]}"
            else:
                prefix = f"{prefix.partition(':')[0]}:{part}"


def highest(uuid: str, executed: str, committing: Iterable[str]) -> int:
    """The highest number of a server's own transactions, whatever their tags, in a set
    ``UUID:1-7:9:TAG:1-3,…`` and among those that are owned."""
    numbers = [0]
    for group in re.sub(r"\s", "", executed, flags=re.ASCII).split(","):
        prefix, *rest = group.split(":")
        if prefix.lower() == uuid:
            spans = [part.rpartition("-")[2] for part in rest]
            numbers += [int(number) for number in spans if is_digits(number)]
    for one in committing:
        prefix, *_, number = one.split(":")
        if prefix.lower() == uuid and is_digits(number):
            numbers.append(int(number))
    return max(numbers)


def by_domain(position: str) -> dict[str, int]:
    """The last numbers in ``@@gtid_binlog_pos``: ``0-1-7,5-1-2``."""
    found = map(_MARIADB_GTID.fullmatch, re.sub(r"\s", "", position, flags=re.ASCII).split(","))
    return {each[1]: int(each[3]) for each in found if each is not None}
