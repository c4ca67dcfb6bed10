"""The composition root: command line, configuration, Kafka adapters, files, signals, logs."""
