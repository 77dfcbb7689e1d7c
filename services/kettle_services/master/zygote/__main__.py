"""
`python -m kettle_services.master.zygote SOCKET MODULE...`: the socket is the number of an inherited descriptor.
"""

import os
import sys

from kettle_services.master.zygote.program import serve


def main(arguments: list[str]) -> None:
    """Fork services until the master ends; in a child, be the service."""
    sock, *modules = arguments
    os.set_inheritable(int(sock), False)
    serve(int(sock), modules)


if __name__ == "__main__":
    main(sys.argv[1:])
