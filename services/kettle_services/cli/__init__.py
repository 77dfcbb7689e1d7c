"""
The `kettle` command: what people type.

Owns nothing in the log.  Asks the schedd, the collector, the negotiator and accounting through `kettle.client`; starts
and stops the personal pool of this machine through `kettle.pool`; is the entry point of every role (`kettle run ROLE`).

    __main__     which subcommand runs, and how its errors are shown
    commands/    one module per subcommand: its arguments, its help, what it does
    screen       tables, colours, JSON: all output
    timeline     events as sentences
    reasons      why a job waits, as sentences
"""
