"""Events for those without Prometheus: what begins to be ill, and what is well again."""
