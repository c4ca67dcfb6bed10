"""The programs of a live run are those of the demo's servers; what ends a run is called so here."""

from actors.runtime.programs import HOST, Program, free_port
from actors.runtime.programs import ProgramError as LiveError

__all__ = ["HOST", "LiveError", "Program", "free_port"]
