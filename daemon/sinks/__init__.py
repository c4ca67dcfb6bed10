"""The configured sinks: a section, what ``check-config`` asks, and a writer for each kind."""
