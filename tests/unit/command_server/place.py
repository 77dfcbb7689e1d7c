"""A place with command servers, and those who ask them: an interpreter, or the compiled launcher."""

import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from kettle.command_server import asking

SERVER: Final = """\
import os, sys
from kettle.command_server import asking, server
server.IDLE_S = {idle_s}
assigned = server.serve(asking.socket_path(asking.directory(), asking.context()), "", {modules!r})
{then}"""
ONCE: Final = """\
if assigned is not None:
    exec(assigned.words[-1])
"""
CALLER: Final = """\
import sys
sys.path[:] = {paths!r}
from kettle.command_server import asking
print("began", flush=True)
status = asking.forked(["command", *sys.argv[1:]])
print("by itself" if status is None else status)
"""
COMPILED: Final = """\
#!{program}
# command  {python}
print("by itself")
"""


class Place:
    """A directory of sockets, and what is said and asked there."""

    def __init__(self, directory: Path, program: Path | None = None) -> None:
        """`program`: the compiled launcher that asks."""
        self.directory = directory
        self.script: Path | None = None
        if program is not None:
            self.script = directory / "command"
            self.script.write_text(COMPILED.format(program=program, python=sys.executable))
            self.script.chmod(0o755)
        self.began = [b"began\n"] if program is None else []
        """What a caller says before its command does."""
        self.environ = {**os.environ, "XDG_RUNTIME_DIR": str(directory), asking.VARIABLE: "on"}
        self.before: Sequence[str] = ()
        """Words with which servers are started by another program."""
        self.servers: list[subprocess.Popen[bytes]] = []

    def serve(self, *modules: str, first: str = "", then: str = ONCE) -> subprocess.Popen[bytes]:
        """
        A server for callers of `ask`, which takes orders when this returns; `first`: lines that it runs before it is one, `then`:
        what its processes do.
        """
        server = self.start(*modules, first=first, then=then)
        while not any(map(listens, self.addresses())):
            assert server.poll() is None
        return server

    def start(
        self, *modules: str, idle_s: float = 60.0, first: str = "", then: str = ONCE
    ) -> subprocess.Popen[bytes]:
        """As `serve`, without a look whether it takes orders yet, or any more."""
        text = f"{first}\n{SERVER.format(modules=modules, idle_s=idle_s, then=then)}"
        with (self.directory / "said").open("ab") as said:
            server = subprocess.Popen(
                [*self.before, *self.python(), self.paths() + text], env=self.environ, stderr=said
            )
        self.servers.append(server)
        return server

    def said(self) -> str:
        """What the servers have complained about."""
        return (self.directory / "said").read_text()

    def addresses(self) -> list[Path]:
        """Of all servers that are, or were, here."""
        return list((self.directory / "kettle").glob("commands-*"))

    def ask(
        self, program: str, typed: bytes = b"", before: Sequence[str] = (), **variables: str
    ) -> list[str]:
        """The lines that a caller and its command print, and then the status of the command."""
        done = subprocess.run(
            [*before, *self.caller(), program],
            input=typed,
            env=self.environ | variables,
            cwd=self.directory,
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        lines = done.stdout.decode().splitlines()
        if self.script is None:
            return lines
        return ["began", *lines, *([] if lines[-1:] == ["by itself"] else [str(done.returncode)])]

    def caller(self) -> list[str]:
        """The words that ask for a command, without its own."""
        return [*self.python(), CALLER.format(paths=sys.path)] if self.script is None else [str(self.script)]

    def asking(self, program: str) -> "subprocess.Popen[bytes]":
        """One that asks, and is not waited for."""
        return subprocess.Popen(
            [*self.caller(), program],
            env=self.environ,
            cwd=self.directory,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    @staticmethod
    def python() -> list[str]:
        """An interpreter as launchers have it."""
        return [sys.executable, "-IS", "-c"]

    @staticmethod
    def paths() -> str:
        """Where its modules are, as the first lines of what it runs."""
        return f"import sys\nsys.path[:] = {sys.path!r}\n"


def listens(address: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as probe:
        try:
            probe.connect(str(address))
        except ConnectionRefusedError:
            return False
    return True
