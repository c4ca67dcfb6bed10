"""Where a pipeline stands: positions, the lane ledger, the snapshot on disk, recovery.

Pure: no threads, no clock, no Kafka, no Spark. The owner's mailbox is the lock of all that
lives here (design: the committer owns the ledger).
"""
