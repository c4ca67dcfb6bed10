"""PostgreSQL for live runs is the demo's."""

from demo.servers.postgres import MISSING, Postgres

__all__ = ["MISSING", "Postgres"]
