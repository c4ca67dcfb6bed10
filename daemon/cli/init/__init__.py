"""``binlogd init``: writes a first configuration from what the topics hold."""
