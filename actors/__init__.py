"""The four actors of a pipeline, as deterministic logic in thin pykka shells."""
