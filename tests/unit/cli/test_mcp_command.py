"""The command `kettle mcp` without the gateway that it asks."""

import asyncio
import json
import os
import sys
from pathlib import Path

from kettle.testing.commands.running import KETTLE

MESSAGE = b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n'
TOKEN = "the contents of the private file"


async def test_the_token_is_told_to_nobody_who_has_the_port_meanwhile(tmp_path: Path) -> None:
    """
    While the gateway is away any account can listen at its port, and would be the pool's with that token.
    """
    heard: list[bytes] = []

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.read(1000))
        writer.close()

    server = await asyncio.start_server(listen, "127.0.0.1", 0)
    async with server:
        directory = tmp_path / "gateway"
        directory.mkdir(mode=0o700)
        (directory / "port").write_text(str(server.sockets[0].getsockname()[1]))
        (directory / "token").write_text(TOKEN)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, *KETTLE, "mcp", "--home", str(tmp_path)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env=dict(os.environ),
        )
        out, _ = await process.communicate(MESSAGE)
    assert "the gateway does not answer" in json.loads(out)["error"]["message"]
    assert [] == heard
