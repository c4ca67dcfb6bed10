"""Verification: compares a target with its source's own table by value, while both change."""
