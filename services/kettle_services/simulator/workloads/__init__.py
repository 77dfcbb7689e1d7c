"""The jobs of a simulation: made by rules, or read from traces."""
