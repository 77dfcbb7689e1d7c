"""Mail about jobs, in a real pool with a mail server of the test."""

import asyncio
import contextlib
import socket
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path

from kettle.client import select
from kettle.testing.patience import PATIENCE_S
from kettle.testing.shared_pool import SharedPool


class MailServer:
    """Takes any mail, by as much of SMTP (RFC 5321) as that needs."""

    def __init__(self) -> None:
        self.mails: asyncio.Queue[EmailMessage] = asyncio.Queue()

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 test\r\n")
        while line := (await reader.readline()).strip().upper():
            if line == b"DATA":
                writer.write(b"354 go on\r\n")
                text = await reader.readuntil(b"\r\n.\r\n")
                message = message_from_bytes(text.removesuffix(b".\r\n"), policy=policy.default)
                assert isinstance(message, EmailMessage)
                self.mails.put_nowait(message)
            if line == b"QUIT":
                writer.write(b"221 bye\r\n")
                break
            refused = line.startswith(b"RCPT TO:<NOBODY@")
            writer.write(b"550 there is nobody\r\n" if refused else b"250 ok\r\n")
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


def reserved_port() -> socket.socket:
    """A port that refuses connections, and that nobody else can have meanwhile."""
    port = socket.socket()
    port.bind(("127.0.0.1", 0))
    return port


async def test_mail_waits_for_its_server_and_jobs_do_not(shared_pool: SharedPool, tmp_path: Path) -> None:
    """
    Jobs end while there is no mail server; their mails outlive the shadow, and arrive once when there is one.
    """
    port, server = reserved_port(), MailServer()
    settings: dict[str, dict[str, str | float]] = {
        "shadow": {
            "mail_server": f"127.0.0.1:{port.getsockname()[1]}",
            "mail_domain": "example.org",
            "mail_retry": 0.5,
            "retry": 0.1,
        }
    }
    async with (
        shared_pool.lent(settings=settings) as pool,
        asyncio.timeout(PATIENCE_S),
    ):
        waiting = pool.home / "state" / "mail.schedd"
        while not (waiting / "written").exists():  # nobody is told of what happened before
            await asyncio.sleep(0.05)
        clusters: list[int] = []
        for wish, who, code in (
            ("complete", "nobody", 0),
            ("error", "ann@example.com", 3),
            ("error", "ann", 0),
        ):
            description = f"""\
executable = /bin/sh
arguments = "-c 'exit {code}'"
notification = {wish}
notify_user = {who}
email_attributes = RequestCpus
queue
"""
            clusters.append((await pool.client.submit(description, cwd=tmp_path)).cluster)
            await pool.client.wait(select(clusters[-1]))
        while len(list(waiting.glob("*.eml"))) < 2:
            await asyncio.sleep(0.05)
        await pool.restarted("shadow", after=pool.kill("shadow"))
        async with await asyncio.start_server(server.talk, sock=port):
            mail = await server.mails.get()
            while list(waiting.glob("*.eml")):
                await asyncio.sleep(0.05)

    subject = f"[Kettle] Job {clusters[1]}.0 has ended with exit code 3"
    assert ("ann@example.com", "kettle@example.org", subject) == (
        mail["To"],
        mail["From"],
        mail["Subject"],
    )
    assert "\nRequestCpus = 1" in mail.get_content()
    assert server.mails.empty()
