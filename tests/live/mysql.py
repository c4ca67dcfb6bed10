"""MySQL for live runs is the demo's."""

from demo.servers.mysql import ROOT, MySql

__all__ = ["ROOT", "MySql"]
