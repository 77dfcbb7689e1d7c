"""A port for a server that a test will start, or for one that is not there."""

import atexit
import socket


def held_port() -> int:
    """
    A port of the loopback interface that nobody else is given as long as this process lives; until the test's own server
    listens there, connections are refused.

    A port that was only looked for may be taken before one listens at it: tests run side by side, and each starts servers.
    """
    holder = socket.socket()
    holder.bind(("127.0.0.1", 0))
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # for who listens there, as servers set it
    atexit.register(holder.close)  # else the end of the process complains about each
    return int(holder.getsockname()[1])
