"""Repairs of the rows that a verification has found: ``tables verify --repair``."""
