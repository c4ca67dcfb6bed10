"""MariaDB for live runs is the demo's."""

from demo.servers.mariadb import MISSING, Answer, MariaDb

__all__ = ["MISSING", "Answer", "MariaDb"]
