"""The processes beside the daemon, as members of the status document. Pure."""

from __future__ import annotations

from actors.runtime.program_keeper import ProgramFigures
from daemon.admin.status import document as doc
from sparkwriter.session.keeper import SessionFigures


def program_of(program: ProgramFigures) -> doc.Program:
    """A program beside the daemon."""
    return {
        "program": program.name,
        "state": program.state,
        "seconds": round(program.since_s, 3),
        "pid": program.pid,
        "starts": program.starts,
        "why": program.why,
    }


def session_of(session: SessionFigures) -> doc.Session:
    """Spark's session."""
    return {
        "pid": session.pid,
        "age_seconds": None if session.age_s is None else round(session.age_s, 3),
        "down_seconds": None if session.down_s is None else round(session.down_s, 3),
        "rebuilt": session.rebuilt,
        "last_end": session.last_end,
    }
