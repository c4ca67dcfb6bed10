"""The binary log of MySQL and MariaDB, beside a position of Debezium's in it."""

from __future__ import annotations

from dataclasses import replace

from collector.watch import gtids
from collector.watch.kept import Ask, KeptLog, Offset, literal, whole
from databases.base.errors import DatabaseRefused

_VARIABLES = (
    "binlog_expire_logs_seconds", "expire_logs_days", "binlog_expire_logs_auto_purge",
    "max_binlog_total_size", "server_uuid", "server_id", "gtid_mode", "binlog_format",
    "binlog_row_image", "binlog_row_value_options",
)  # fmt: skip

_READ = {
    "binlog_format": ("ROW", "changes of sessions since then are statements"),
    "binlog_row_image": ("FULL", "changes of sessions since then lack columns"),
    "binlog_row_value_options": ("", "changes of JSON documents since then are parts of them"),
}
"""By setting: as it must be, and what another value means. Debezium passes over such changes, or
fails, and looks at the settings at its start alone."""


def look(ask: Ask, offset: Offset, known: str, by_file: bool) -> KeptLog:
    """``known``: the server's identity when the position was looked at before, or empty;
    ``by_file``: whether it was read by files without GTIDs then. Raises DatabaseAway;
    DatabaseRefused where a right lacks."""
    variables, logs = _variables(ask), _logs(ask)
    file, at = str(offset.get("file", "")), whole(offset.get("pos")) or 0
    by_file = by_file or ("server_uuid" in variables and gtids.is_by_file(offset, variables))
    found = KeptLog(
        lost=_lost(ask, offset, variables, logs, known, by_file),
        identity=_identity(variables),
        end=f"{logs[-1][0]}:{logs[-1][1]}" if logs else "",
        by_file=by_file,
        unread=_unread(variables),
        xa_rollbacks=_xa_rollbacks(ask),
    )
    names = [name for name, _ in logs]
    if found.lost or file not in names:  # by GTIDs a server has the place in other files
        return found
    place = names.index(file)
    beyond = max(0, logs[place][1] - at) + sum(size for _, size in logs[place + 1 :])
    age = _age(ask, offset)
    last = place == len(logs) - 1
    return replace(
        found,
        bytes=beyond,
        seconds=age if beyond else 0.0,
        purge_s=None if last else _purge_s(variables, age),
        room_bytes=None if last else _room(variables, logs, place),
    )


def _lost(
    ask: Ask,
    offset: Offset,
    variables: dict[str, str],
    logs: list[tuple[str, int]],
    known: str,
    by_file: bool,
) -> str:
    """Why the server can't give what comes after the position, or nothing."""
    mariadb, mode = "server_uuid" not in variables, variables.get("gtid_mode", "")
    file, at, sets = str(offset.get("file", "")), whole(offset.get("pos")) or 0, _sets(offset)
    identity, names = _identity(variables), [name for name, _ in logs]
    # After a fail-over a file of this name may be here, and be another.
    here = whole(offset.get("server_id")) == whole(variables.get("server_id"))
    if here and logs and _number(file) > _number(names[-1]):
        return f"the server's log ends before {file}, where the position is: it was reset"
    if mode == "ON" and (why := gtids.unfit(ask, sets, by_file, file if here else "", names)):
        return why
    if sets and mariadb:
        return _lost_mariadb(ask, sets, logs)
    if sets and (mode == "ON" or (mode == "ON_PERMISSIVE" and not by_file)):
        return _lost_mysql(ask, sets)
    if known and known != identity:
        return f"it is another server now ({identity}, before {known}), and no GTIDs tell the place"
    return _lost_file(logs, file, at)


def identity_of(ask: Ask) -> str:
    """Which server it is. Raises DatabaseAway, DatabaseRefused."""
    return _identity(_variables(ask))


def _identity(variables: dict[str, str]) -> str:
    return variables.get("server_uuid") or f"server_id {variables.get('server_id')}"


def _variables(ask: Ask) -> dict[str, str]:
    names = ", ".join(f"'{name}'" for name in _VARIABLES)
    rows = ask(f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({names})")
    return {str(name).lower(): str(value) for name, value in rows}


def _unread(variables: dict[str, str]) -> str:
    """Why the log has changes that no row tells, or nothing."""
    for name, (wanted, means) in _READ.items():
        if variables.get(name, wanted) != wanted:
            return (
                f"{name} is {variables[name]}: {means}, and are not read. SET GLOBAL {name} = "
                f"'{wanted}', then binlogd collector reset begins at the source's present"
            )
    return ""


def _xa_rollbacks(ask: Ask) -> int:
    """How many may have rolled back what was prepared, since the server's start."""
    rows = ask("SHOW GLOBAL STATUS WHERE Variable_name IN ('Com_xa_prepare', 'Com_xa_rollback')")
    counts = {str(name).lower(): whole(count) or 0 for name, count in rows}
    return counts.get("com_xa_rollback", 0) if counts.get("com_xa_prepare") else 0


def _number(file: str) -> int:
    """Of a file of the log, which are counted from 1 on, also after a reset."""
    return whole(file.rpartition(".")[2]) or 0


def _logs(ask: Ask) -> list[tuple[str, int]]:
    """The files with their sizes, the oldest first."""
    return [(str(row[0]), whole(row[1]) or 0) for row in ask("SHOW BINARY LOGS")]


def _sets(offset: Offset) -> str:
    return "".join(str(offset.get("gtids") or "").split())


def _age(ask: Ask, offset: Offset) -> float | None:
    """By the server's own clock, which stamps its log and purges it."""
    seconds = whole(offset.get("ts_sec"))
    if not seconds:
        return None
    ((now_us,),) = ask("SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', SYSDATE(6))")
    return int(str(now_us)) / 1e6 - seconds


def _purge_s(variables: dict[str, str], age: float | None) -> float | None:
    """A file goes when its end is older than the limit: at the earliest when the position is."""
    if variables.get("binlog_expire_logs_auto_purge", "ON") == "OFF" or age is None:
        return None
    limit = float(variables.get("binlog_expire_logs_seconds") or 0)
    limit = limit or float(variables.get("expire_logs_days") or 0) * 86_400
    return max(0.0, limit - age) if limit else None


def _room(variables: dict[str, str], logs: list[tuple[str, int]], place: int) -> int | None:
    """MariaDB may bound the size of all files together: the oldest goes then."""
    limit = whole(variables.get("max_binlog_total_size")) or 0
    if not limit:
        return None
    return max(0, limit - sum(size for _, size in logs[place:]))


def _lost_file(logs: list[tuple[str, int]], file: str, at: int) -> str:
    sizes = dict(logs)
    if not file:
        return ""
    if file not in sizes:
        first = logs[0][0] if logs else "none"
        return f"the binary log {file} is not there any more; the oldest is {first}"
    if at > sizes[file]:
        return (
            f"the binary log {file} ends at {sizes[file]}, before the position {at}: the server "
            "has another history"
        )
    return ""


def _lost_mysql(ask: Ask, ours: str) -> str:
    text = literal(ours)
    ((purged, executed, missing),) = ask(
        f"SELECT GTID_SUBSET(@@GLOBAL.gtid_purged, {text}), "
        f"GTID_SUBSET({text}, @@GLOBAL.gtid_executed), "
        f"GTID_SUBTRACT({text}, @@GLOBAL.gtid_executed)"
    )
    if not whole(purged):
        return "the server has purged transactions that were not read yet (gtid_purged)"
    if not whole(executed):
        return (
            f"the server has not executed transactions that were read ({_short(str(missing))}): it "
            "has another history"
        )
    return ""


def _lost_mariadb(ask: Ask, ours: str, logs: list[tuple[str, int]]) -> str:
    """By domain the newest sequence number of each side."""
    read, here = _places(ours), _places(_one(ask, "SELECT @@GLOBAL.gtid_binlog_state"))
    for domain, sequence in read.items():
        if domain not in here or here[domain] < sequence:
            return (
                f"the server's log ends at {here.get(domain, 'nothing')} in domain {domain}, "
                f"before {sequence} that was read: it has another history"
            )
    first = _places(_begin(ask, logs))
    for domain, sequence in first.items():
        if read.get(domain, 0) < sequence:
            return (
                f"the oldest binary log, {logs[0][0]}, begins after {sequence} in domain {domain}, "
                f"and {read.get(domain, 'nothing')} was read last: what is between is purged"
            )
    return ""


def _begin(ask: Ask, logs: list[tuple[str, int]]) -> str:
    """The GTIDs before the oldest file, as its own first event lists them."""
    if not logs:
        return ""
    try:
        rows = ask(f"SHOW BINLOG EVENTS IN {literal(logs[0][0])} LIMIT 4")
    except DatabaseRefused:
        return ""  # the file went meanwhile, or a right lacks: the reader's own error tells it
    return next((str(row[5]).strip("[]") for row in rows if str(row[2]) == "Gtid_list"), "")


def _places(text: str) -> dict[str, int]:
    """``0-1-5,1-2-7`` as the highest sequence number of each domain."""
    found: dict[str, int] = {}
    for part in text.replace(" ", "").split(","):
        domain, _, rest = part.partition("-")
        sequence = whole(rest.rpartition("-")[2])
        if sequence is not None:
            found[domain] = max(sequence, found.get(domain, 0))
    return found


def _one(ask: Ask, sql: str) -> str:
    rows = ask(sql)
    return "" if not rows or rows[0][0] is None else str(rows[0][0])


def _short(text: str) -> str:
    one = "".join(text.split())
    return one if len(one) <= 80 else f"{one[:77]}…"
