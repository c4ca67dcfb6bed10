"""Compares two targets of one table of the source with each other."""
