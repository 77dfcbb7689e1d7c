#!/usr/bin/env python3
"""
Starts a single-user server in a job and publishes its port: what nobody else may know comes from a file, which is gone before the server
runs.

Its arguments are the command of the server.  It stands alone: it takes any Python 3 of the image or the machine, and nothing else.
"""

import json
import os
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

SECRETS = "kettle-hub-secrets.json"
ADDRESS = "JUPYTERHUB_SERVICE_URL"
SERVICE = "notebook"
_WITHIN_S = 60.0


def environment_of(secrets: Mapping[str, str], environ: Mapping[str, str], port: int) -> dict[str, str]:
    """The environment of the server, which listens at this port of the loopback interface."""
    place = urlsplit(environ.get(ADDRESS) or "http://127.0.0.1/")
    address = urlunsplit(place._replace(scheme="http", netloc=f"127.0.0.1:{port}"))
    return {**environ, **secrets, ADDRESS: address}


def free_port() -> int:
    """One that nobody uses at the moment."""
    with socket.socket() as tried:
        tried.bind(("127.0.0.1", 0))
        return int(tried.getsockname()[1])


def publish(port: int) -> None:
    """Tell the job's starter; exits if it refuses."""
    config = Path(os.environ.get("_CONDOR_SCRATCH_DIR") or ".", ".chirp.config")
    host, at, cookie = config.read_text().split()
    with socket.create_connection((host, int(at)), _WITHIN_S) as starter, starter.makefile("rb") as answers:
        for words in (f"cookie {cookie}", f"publish {SERVICE}:{port}/tcp"):
            starter.sendall(f"{words}\n".encode())
            if int(answers.readline() or "-1") < 0:
                sys.exit(f"this machine does not publish the port {port} of the job")


def main() -> None:
    """Become the server."""
    file = Path(SECRETS)
    secrets = json.loads(file.read_text())
    file.unlink()
    port = free_port()
    publish(port)
    command = sys.argv[1:]
    os.execvpe(command[0], command, environment_of(secrets, os.environ, port))  # noqa: S606 - what the hub says


if __name__ == "__main__":
    main()
