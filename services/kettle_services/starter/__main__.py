"""
The zygote: `python -m kettle_services.starter SOCKET LIFELINE EXECUTE`.

The first two are numbers of inherited descriptors (-1: there is no lifeline), the third is where the sandboxes are.
"""

import socket
import sys
from types import ModuleType
from typing import cast

# msgspec takes this module if it is installed and does as well without it; each starter would copy its five megabytes.
sys.modules["typing_extensions"] = cast("ModuleType", None)

from kettle.execution.processes.zygote import serve  # noqa: E402 - after the line above
from kettle.execution.sandbox.directory import release_execute  # noqa: E402 - after the line above
from kettle_services.starter.job_loop import run_starter  # noqa: E402


def main(arguments: list[str]) -> int:
    """Fork starters until the startd ends."""
    sock, lifeline_fd, execute = int(arguments[0]), int(arguments[1]), arguments[2]
    if serve(socket.socket(fileno=sock), lifeline_fd, lambda line: run_starter(line, lifeline_fd)):
        release_execute(execute)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
