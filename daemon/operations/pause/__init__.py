"""Pipelines that a person has paused: what is recorded, and the commands."""
