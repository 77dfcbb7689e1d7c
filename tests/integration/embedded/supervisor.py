"""
A supervisor as a process of its own, for tests that kill it or run it as somebody else.

Arguments: a directory, and a template or nothing.  Prints the process ids and account numbers of both servers, then
waits for a line, writes and reads a row, kills both servers, brings them back, reads the row again, and stops them.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path

from kettle.embedded import EmbeddedPostgres
from kettle.testing.servers.embedded import Servers, servers


async def main(directory: Path, template: Path | None) -> None:
    async with servers(directory, template=template) as pair:
        say(pair.postgres.pid, uid(pair.postgres.pid), pair.nats.pid, uid(pair.nats.pid))
        await asyncio.to_thread(sys.stdin.readline)
        await survive(pair)


async def survive(pair: Servers) -> None:
    await execute(pair.postgres, "CREATE TABLE kept AS SELECT 7 AS n")
    for server in (pair.postgres, pair.nats):
        os.kill(server.pid, signal.SIGKILL)
        await server.wait()
        await server.start()
    say(await execute(pair.postgres, "SELECT n FROM kept"))


async def execute(postgres: EmbeddedPostgres, query: str) -> object:
    connection = await postgres.connect()
    try:
        return await connection.fetchval(query)
    finally:
        await connection.close()


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def uid(pid: int) -> int:
    return Path(f"/proc/{pid}").stat().st_uid


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2]) if sys.argv[2:] else None))
