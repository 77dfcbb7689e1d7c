"""The command server of the condor_* commands: `kettle.command_server.starting` begins it."""

import os
import sys
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


def serve(address: str, lock: int, where: int) -> None:
    """
    Be the server at an address; in a forked process, be a command and end with its status.

    `lock`: the descriptor of a file that is locked as long as this process lives; it says which that is.
    `where`: the descriptor of the directory in which the address is.
    """
    for kept in (lock, where):
        os.set_inheritable(kept, False)
    os.ftruncate(lock, 0)
    os.write(lock, b"%d\n" % os.getpid())
    short_process.defer_loading()
    modules = [f"kettle_services.condor.commands.{COMMANDS[name][0]}" for name in sorted(SERVED)]
    words = server.serve(address, [*modules, *_ALSO])
    if words is not None:
        for kept in (lock, where):  # a command may outlive a server that is killed, and another one may begin
            os.close(kept)
        name, *sys.argv[:] = words
        short_process.exit_quickly(main(name, sys.argv[1:]))
