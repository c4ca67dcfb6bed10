"""A cache in Redis that follows a table: a hash for each row, under the row's key.

``[sink.cache]`` with ``entry = "redis_cache:apply"``; ``settings.url`` says where Redis is. Each
hash carries the version that wrote it, and a script takes a write only where it is newer: so
whoever comes late changes nothing. A deleted row leaves its version for ``settings.keep_s``.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import redis

KEEP_S = 86_400
ROWS_AT_ONCE = 1_000

PUT = """
local key, version = KEYS[1], tonumber(ARGV[1])
local stored = redis.call('HGET', key, '_version')
if stored and tonumber(stored) > version then return 0 end
redis.call('DEL', key)
redis.call('HSET', key, '_version', ARGV[1], unpack(ARGV, 3))
if ARGV[2] ~= '0' then redis.call('EXPIRE', key, ARGV[2]) end
return 1
"""

_clients: dict[str, redis.Redis] = {}


def apply(batch: pa.RecordBatchReader, context: Any) -> None:
    """Write each row, or mark it as deleted."""
    client = _client(context.settings["url"])
    put = client.register_script(PUT)
    keep_s = str(context.settings.get("keep_s", KEEP_S))
    for part in batch:
        rows = part.to_pylist()
        for first in range(0, len(rows), ROWS_AT_ONCE):
            with client.pipeline(transaction=False) as pipe:
                for row in rows[first : first + ROWS_AT_ONCE]:
                    deleted = row.pop("_op") == "D"
                    fields = ["_deleted", "1"] if deleted else _fields(row)
                    arguments = [str(context.version), keep_s if deleted else "0", *fields]
                    put(keys=[_key(context, row)], args=arguments, client=pipe)
                pipe.execute()


def statement(context: Any, kind: str, to: str | None) -> None:
    """TRUNCATE and DROP remove the table's hashes; a new name is not followed."""
    if kind == "rename":
        raise NotImplementedError(f"{context.target} is renamed to {to}: fill the cache anew")
    client = _client(context.settings["url"])
    for key in client.scan_iter(match=f"{_glob(context.target)}:*", count=ROWS_AT_ONCE):
        client.delete(key)


def _key(context: Any, row: dict[str, Any]) -> str:
    return ":".join([context.target, *(str(row[name]) for name in context.keys)])


def _fields(row: dict[str, Any]) -> list[str]:
    return [text for name, value in row.items() if value is not None for text in (name, str(value))]


def _glob(text: str) -> str:
    return "".join(f"\\{sign}" if sign in "*?[]\\" else sign for sign in text)


def _client(url: str) -> redis.Redis:
    if url not in _clients:
        _clients[url] = redis.Redis.from_url(url, socket_timeout=30.0)
    return _clients[url]
