"""
The master: one per host, it keeps the other services of the host running.

Owns      nothing in the log; on disk `state.json`, `off.json`, the lock and the sockets of a personal pool
Starts    the embedded NATS and PostgreSQL unless it is given URLs, then `python -m kettle_services.<role>` per `daemon_list`,
          forked from a process that has loaded them all
Watches   ends (back-off, then again), silence (SIGABRT for the stacks, then again), the free disk space (stops with
          a sentence), the installed version (restarts itself)
Answers   `master.control` and `master.query_daemons` of administrators; publishes the ad `DaemonMaster`
Leaves    nothing, and if it is killed running jobs, to the next master: services and servers die with it
"""
