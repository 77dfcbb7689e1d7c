"""The pages of the pool: machines, shares, negotiations, the log, usage, failures, administration."""
