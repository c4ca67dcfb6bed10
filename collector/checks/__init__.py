"""What a database lacks to be followed by a reader of its log, with the statements that mend it."""
