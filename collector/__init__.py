"""What comes before the stream: a log that comes along, and a collector that reads a database."""
