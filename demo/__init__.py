"""A real dev broker, a workload generator and the demo itself."""
