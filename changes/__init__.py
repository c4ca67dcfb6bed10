"""What a message says: formats, decoding, routing, net changes.

Pure: no threads, no clock, no Kafka, no Spark.
"""
