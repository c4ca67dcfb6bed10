"""Jobs: what takes long and is not the flow. Recorded, carried out in steps, resumed."""
