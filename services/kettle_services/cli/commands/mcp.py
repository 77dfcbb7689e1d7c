"""`kettle mcp`: tools for a language model that runs on this machine."""

import argparse
import http.client
from pathlib import Path
from typing import Final

import msgspec

from kettle.auth.private_socket import connected
from kettle.client import home_directory
from kettle_services.cli.errors import CommandError
from kettle_services.cli.options import home_option
from kettle_services.cli.output.screen import Screen
from kettle_services.cli.standard_input import standard_input

HELP: Final = """\
Serve the tools of this pool to a language model by the Model Context Protocol, over standard input and output: a program that has
models use tools starts it.  It asks the gateway of the pool on this machine, in your name; that gateway needs rest = true.

Tools that read: jobs, history, why a job waits, the log, failures, machines, claims, users, negotiations, usage.
Tools that hold, release, remove or submit jobs show first what they would do, and do it when they are called again with the
token of that answer.

examples:
  kettle mcp
  {"mcpServers": {"kettle": {"command": "kettle", "args": ["mcp"]}}}      in the settings of such a program
"""
_PATIENCE_S: Final = 120.0
_INTERNAL_ERROR: Final = -32603


class _Numbered(msgspec.Struct):
    id: str | int | None = None


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    home_option(parser)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Answer one message a line until there are no more."""
    home: Path = arguments.home or home_directory()
    gateway = _Gateway(home / "gateway")
    for line in standard_input():
        if not line.strip():
            continue
        answer = gateway.answer(line)
        if answer:
            screen.octets(answer + b"\n")
            screen.flush()
    return 0


class _Connection(http.client.HTTPConnection):
    """Over the private socket: at the port somebody else may listen while the gateway is away."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=_PATIENCE_S)
        self._path = path

    def connect(self) -> None:
        self.sock = connected(self._path, _PATIENCE_S)


class _Gateway:
    """Asks it, over a connection that lasts."""

    def __init__(self, directory: Path) -> None:
        """Raises CommandError: it does not answer over HTTP."""
        self._directory = directory
        self._connection = _Connection(directory / "socket")
        try:
            self._token()
        except OSError as error:
            raise CommandError(
                f"{directory}: {error.strerror}: the gateway of this pool does not answer over HTTP; write rest = true into [gateway] of "
                "kettle.toml, then: kettle reconfig"
            ) from error

    def _token(self) -> str:
        """Each gateway that starts makes another one."""
        return (self._directory / "token").read_text().strip()

    def answer(self, line: bytes) -> bytes:
        """The answer to a message as one line; empty if it wants none."""
        try:
            status, said = self._asked(line)
        except (http.client.HTTPException, OSError):
            self._connection.close()  # the gateway may have been restarted
            try:
                status, said = self._asked(line)
            except (http.client.HTTPException, OSError) as error:
                self._connection.close()
                return _failed(line, f"the gateway does not answer at {self._directory}/socket: {error}")
        if status == http.HTTPStatus.ACCEPTED:
            return b""
        if status in {http.HTTPStatus.OK, http.HTTPStatus.BAD_REQUEST} and said.startswith(b'{"jsonrpc"'):
            return said
        return _failed(line, f"the gateway refuses: {said.decode(errors='replace')}")

    def _asked(self, line: bytes) -> tuple[int, bytes]:
        headers = {"Authorization": f"Bearer {self._token()}", "Content-Type": "application/json"}
        self._connection.request("POST", "/mcp", body=line, headers=headers)
        response = self._connection.getresponse()
        return response.status, response.read()


def _failed(line: bytes, sentence: str) -> bytes:
    try:
        number = msgspec.json.decode(line, type=_Numbered).id
    except msgspec.MsgspecError:
        number = None
    return msgspec.json.encode(
        {"jsonrpc": "2.0", "id": number, "error": {"code": _INTERNAL_ERROR, "message": sentence}}
    )
