"""A job's JSON text, as in its file: versioned, checksummed, readable. Pure."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import msgspec

from changes.printable import own_json_text
from daemon.jobs.record import NAME, Job

VERSION = 1
"""Version of the file's layout. A reader refuses what it does not know instead of guessing."""


class DamagedJob(Exception):
    """The text is not a whole job of ours: what is wrong with it, in one line."""


def encode(job: Job) -> str:
    """The file's text: indented JSON with a checksum over the body."""
    body = msgspec.to_builtins(job)
    document = {"version": VERSION, "sha256": _checksum(body), "body": body}
    return own_json_text(document, indent=1) + "\n"


def decode(text: str) -> Job:
    """Read ``encode``'s text back. Raises DamagedJob: cut short, altered, of another version."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DamagedJob(f"not JSON: {error}") from error
    if not isinstance(document, dict) or not isinstance(document.get("body"), dict):
        raise DamagedJob("not a job's file")
    if (version := document.get("version")) != VERSION:
        raise DamagedJob(f"version {version!r}, this binlogd reads {VERSION}")
    body = document["body"]
    try:
        if document.get("sha256") != _checksum(body):
            raise DamagedJob("the checksum does not match the content")
        job = msgspec.convert(body, Job)
    except (ValueError, OverflowError, RecursionError) as error:
        raise DamagedJob(f"a member is missing or has the wrong type: {error}") from error
    if unknown := _unknown(body, msgspec.to_builtins(job)):
        raise DamagedJob(f"a newer binlogd wrote it: {unknown} is unknown to this one")
    if not NAME.fullmatch(job.id):
        raise DamagedJob(f"{job.id!r} is no job's name")
    return job


def _unknown(body: dict[str, Any], known: dict[str, Any]) -> str | None:
    """A member that would be lost: what is not known may ask for something."""
    for name, value in body.items():
        if name not in known:
            return name
        if isinstance(value, dict) and (inner := _unknown(value, known[name])):
            return f"{name}.{inner}"
    return None


def _checksum(body: dict[str, Any]) -> str:
    """Over the content, not the layout: a person may re-indent the file."""
    try:
        text = msgspec.json.encode(body, order="sorted")
    except UnicodeEncodeError:  # half a character
        text = own_json_text(body).encode()
    return hashlib.sha256(text).hexdigest()
