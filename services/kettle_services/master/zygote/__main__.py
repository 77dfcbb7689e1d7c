"""`python -m kettle_services.master.zygote SOCKET MODULE...`: the socket is the number of an inherited descriptor."""

import os
import runpy
import socket
import sys

from kettle_services.master.zygote.serving import Zygote


def main(arguments: list[str]) -> None:
    """Fork services until the master ends; in a child, be the service."""
    sock, *modules = arguments
    os.set_inheritable(int(sock), False)
    launch = Zygote(socket.socket(fileno=int(sock)), modules).serve()
    if launch is not None:
        sys.argv[1:] = []
        runpy.run_module(launch.module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(sys.argv[1:])
