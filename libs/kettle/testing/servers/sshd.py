"""
A real OpenSSH server for tests, on the loopback interface, which lets the account of the tests in with one key.
"""

import os
import pwd
import shutil
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from kettle.testing.servers.files import serving
from kettle.testing.servers.held_port import held_port

_SEPARATION: Final = Path("/run/sshd")
"""Where the part of the server without rights lives; it is made by what starts the service elsewhere."""


def no_sshd() -> str:
    """Why there can be no server here; empty if there can."""
    if os.geteuid():
        return "only root can start sshd"
    for program, package in (("sshd", "openssh-server"), ("ssh-keygen", "openssh-client")):
        if shutil.which(program) is None:
            return f"there is no {program} (Debian package {package})"
    return ""


class SshServer:
    """A server that runs."""

    def __init__(self, place: Path) -> None:
        self.place: Final = place
        self.port: Final = held_port()
        self.user: Final = pwd.getpwuid(os.geteuid()).pw_name

    def known_hosts(self, port: int, key: str = "host") -> Path:
        """A file that says that the server at a port has a key: its own, or another one."""
        path = self.place / f"known-{port}-{key}"
        kind, words = (self.place / f"{key}.pub").read_text().split()[:2]
        path.write_text(f"[127.0.0.1]:{port} {kind} {words}\n")
        return path


@contextmanager
def sshd(place: Path, *, greeting: str = "") -> Generator[SshServer]:
    """
    One with keys in `place`: `host` of the server, `key` that lets in, and `other` that nobody knows; `greeting` is what its logins print before
    everything else.
    """
    server = SshServer(place)
    for name in ("host", "key", "other"):
        words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", str(place / name)]
        subprocess.run(words, check=True)
    shutil.copy(place / "key.pub", place / "authorized_keys")
    _SEPARATION.mkdir(mode=0o755, exist_ok=True)
    (place / "sshd_config").write_text(
        f"""\
Port {server.port}
ListenAddress 127.0.0.1
HostKey {place}/host
AuthorizedKeysFile {place}/authorized_keys
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
PermitRootLogin prohibit-password
MaxSessions 10
"""
    )
    if greeting:
        (place / "login").write_text(
            f"#!/bin/sh\ncat <<'END'\n{greeting}\nEND\nexec sh -c \"$SSH_ORIGINAL_COMMAND\"\n"
        )
        (place / "login").chmod(0o755)
        with (place / "sshd_config").open("a") as configuration:
            configuration.write(f"ForceCommand {place}/login\n")
    program = shutil.which("sshd")
    assert program is not None
    with serving([program, "-D", "-e", "-f", str(place / "sshd_config")], server.port):
        yield server
