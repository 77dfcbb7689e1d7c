"""The command server of the condor_* commands: `kettle.command_server.starting` begins it."""

import os
import sys
from collections.abc import Sequence
from typing import Final

from kettle.client.connections import short_process
from kettle.command_server import server
from kettle_services.condor.start import COMMANDS, SERVED, main

_ALSO: Final = (
    *("kettle.submit.expected_jobs", "kettle.client.jobs.submission", "kettle.client.jobs.sealed_values"),
    *("kettle.client.accountant", "kettle_services.condor.connections.job_pages"),
    *(
        f"kettle_services.condor.printing.{name}"
        for name in ("print_functions", "queue_output", "queue_views")
    ),
    *(f"kettle_services.condor.printing.{name}" for name in ("status_tables", "priority_table")),
    *("nkeys", "encodings.ascii", "encodings.idna"),  # of credentials, and of a connection
)
"""What commands load when they need it, as a rule."""


def serve(address: str, installation: str, lock: int, where: int) -> None:
    """
    Be the server at an address; in a forked process, be commands and end with the status of the last.

    `installation`: of those who are served, as their launchers tell it.
    `lock`: the descriptor of a file that is locked as long as this process lives; it says which that is.
    `where`: the descriptor of the directory in which the address is.
    """
    for kept in (lock, where):
        os.set_inheritable(kept, False)
    os.ftruncate(lock, 0)
    os.write(lock, b"%d\n" % os.getpid())
    short_process.defer_loading()
    modules = [f"kettle_services.condor.commands.{COMMANDS[name][0]}" for name in sorted(SERVED)]
    # A command may outlive a server that is killed, and another server may begin: none has the lock.
    assigned = server.serve(address, installation, [*modules, *_ALSO], (lock, where))
    if assigned is None:
        return
    words: Sequence[str] | None = assigned.words
    status = 0
    while words is not None:
        name, *sys.argv[:] = words
        status = main(name, sys.argv[1:])
        words = assigned.next(status)
    short_process.exit_quickly(status)
