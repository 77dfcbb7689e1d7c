"""`kettle mcp`: tools for a language model that runs on this machine."""

import argparse
import http.client
from pathlib import Path
from typing import Final

import msgspec

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
    gateway = _Gateway(*_place(home))
    for line in standard_input():
        if not line.strip():
            continue
        answer = gateway.answer(line)
        if answer:
            screen.octets(answer + b"\n")
            screen.flush()
    return 0


def _place(home: Path) -> tuple[int, str]:
    """The port of the gateway and its private token. Raises CommandError: it has none."""
    directory = home / "gateway"
    try:
        port, token = (directory / "port").read_text(), (directory / "token").read_text().strip()
    except OSError as error:
        raise CommandError(
            f"{directory}: {error.strerror}: the gateway of this pool does not answer over HTTP; write rest = true into [gateway] of "
            "kettle.toml, then: kettle reconfig"
        ) from error
    return int(port), token


class _Gateway:
    """Asks it, over a connection that lasts."""

    def __init__(self, port: int, token: str) -> None:
        self._port = port
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_PATIENCE_S)
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

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
                return _failed(line, f"the gateway does not answer at 127.0.0.1:{self._port}: {error}")
        if status == http.HTTPStatus.ACCEPTED:
            return b""
        if status in {http.HTTPStatus.OK, http.HTTPStatus.BAD_REQUEST} and said.startswith(b'{"jsonrpc"'):
            return said
        return _failed(line, f"the gateway refuses: {said.decode(errors='replace')}")

    def _asked(self, line: bytes) -> tuple[int, bytes]:
        self._connection.request("POST", "/mcp", body=line, headers=self._headers)
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
