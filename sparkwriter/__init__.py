"""The sink tier: one long-lived Spark session, one module per kind of sink."""
