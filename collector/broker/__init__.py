"""The log that comes along: a Kafka broker of one node, on this machine alone."""
