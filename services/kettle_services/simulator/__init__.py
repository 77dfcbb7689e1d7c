"""
The scheduling of a pool on a clock of its own: what was recorded is played again, with other rules if somebody asks what
would have been.

The queue, the negotiator and the accountant in it are the services' own pure code; here are only a clock, machines that do
what is asked of them, and what puts these together.
"""
