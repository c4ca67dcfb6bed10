"""The programs of a live run are those of the demo's servers; what ends a run is called so here."""

from demo.servers.program import HOST, Program, free_port
from demo.servers.program import ServerError as LiveError

__all__ = ["HOST", "LiveError", "Program", "free_port"]
