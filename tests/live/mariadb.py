"""MariaDB for live runs is the demo's."""

from demo.servers.client import Answer
from demo.servers.mariadb import MISSING, MariaDb

__all__ = ["MISSING", "Answer", "MariaDb"]
