"""From messages to rows: formats, decoding, routing, net changes.

Pure: no threads, no clock, no Kafka, no Spark.
"""
