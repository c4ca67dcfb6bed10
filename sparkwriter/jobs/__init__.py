"""What Spark does for jobs: reads of the source's tables, checksums."""
