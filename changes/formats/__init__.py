"""The change formats: one module each, of the same shape, and the registry of their names."""

from __future__ import annotations
