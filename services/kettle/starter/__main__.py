"""
The zygote: `python -m kettle.starter SOCKET LIFELINE`, numbers of inherited descriptors; -1: there is no lifeline.
"""

import socket
import sys

from kettle.execution.zygote import serve
from kettle.starter.starter import run_starter


def main(arguments: list[str]) -> int:
    """
    Fork starters until the startd is gone.
    """
    sock, lifeline_fd = (int(argument) for argument in arguments)
    return serve(socket.socket(fileno=sock), lifeline_fd, lambda line: run_starter(line, lifeline_fd))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
