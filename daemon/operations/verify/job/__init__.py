"""The command and the kind of job that compare tables."""
