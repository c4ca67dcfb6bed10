"""Dead letters: how they are stored, read, shown and replayed. The actor is in ``actors``."""
