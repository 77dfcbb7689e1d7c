"""
Mail about jobs: written to the disk with the events that it is about, and sent when the mail server takes it.

Nothing waits for it: neither the jobs, nor their logs, nor the events that come.
"""

import asyncio
import contextlib
import logging
import os
import smtplib
import socket
import time
from collections.abc import Sequence
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Final

from kettle.shadow.mails import Mail
from kettle.shadow.settings import ShadowSettings

_log: Final = logging.getLogger(__name__)
_PATIENCE_S: Final = 30.0
"""For one answer of the mail server."""
_LONGEST_PAUSE_S: Final = 3600.0
_GIVE_UP_S: Final = 5 * 86400.0
"""So long mail servers try to deliver, by custom."""
_REFUSED: Final = 500
_SMTP: Final = 25
_SUFFIX: Final = ".eml"


class Outbox:
    """
    Mails that wait, one file each, below `directory`; a sink for `kettle.userlog.follow`.

    Frames up to `head` are older than this outbox: nobody is told of them.
    """

    def __init__(self, directory: Path, settings: ShadowSettings, *, head: int) -> None:
        self._directory = directory
        self._domain = settings.mail_domain or socket.getfqdn()
        self._from = settings.mail_from or f"kettle@{self._domain}"
        self._loop = asyncio.get_running_loop()
        self.filled: Final = asyncio.Event()
        self.filled.set()
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._mark = directory / "written"
        if not self._mark.exists():
            self._put(self._mark, str(head).encode())
        self._written = int(self._mark.read_bytes())

    def write(self, frame: int, lines: Sequence[Mail]) -> None:
        """
        Keep the mails about one frame; a frame that comes again is passed over.  Blocks on the disk.
        """
        if frame <= self._written:
            return
        for number, mail in enumerate(lines):
            path = self._directory / f"{frame:020}-{number:06}{_SUFFIX}"
            try:
                self._put(path, bytes(self._message(mail, path.stem)))
            except ValueError as error:  # a line break in an address
                _log.warning("no mail can be sent to %r: %s", mail.to, error)
        self._put(self._mark, str(frame).encode())
        self._written = frame
        self._loop.call_soon_threadsafe(self.filled.set)

    def waiting(self) -> list[Path]:
        """
        The files of the mails that wait, oldest first.
        """
        return sorted(self._directory.glob(f"*{_SUFFIX}"))

    def _message(self, mail: Mail, name: str) -> EmailMessage:
        message = EmailMessage()
        names = [each.strip() for each in mail.to.split(",") if each.strip()]
        message["From"] = self._from
        message["To"] = ", ".join(each if "@" in each else f"{each}@{self._domain}" for each in names)
        message["Subject"] = " ".join(mail.subject.split())[:200]
        message["Message-ID"] = f"<{name}.{self._directory.name}@{self._domain}>"
        message["Auto-Submitted"] = "auto-generated"
        message.set_content(mail.body)
        return message

    def _put(self, path: Path, data: bytes) -> None:
        new = path.with_name(f"{path.name}.new")
        with new.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)


class Postman:
    """
    Takes mails from an outbox to the mail server.
    """

    def __init__(self, outbox: Outbox, settings: ShadowSettings) -> None:
        self._outbox = outbox
        host, _, port = settings.mail_server.partition(":")
        self._host, self._port = host, int(port or _SMTP)
        self._first_pause = settings.mail_retry

    async def run(self) -> None:
        """
        For ever.
        """
        pause = self._first_pause
        while True:
            self._outbox.filled.clear()
            if await self._round():
                pause = self._first_pause
                await self._outbox.filled.wait()
            else:
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE_S)

    async def _round(self) -> bool:
        """
        Try to send all that waits; whether nothing is left.
        """
        for path in await asyncio.to_thread(self._outbox.waiting):
            try:
                await asyncio.to_thread(self._send, path)
            except (OSError, smtplib.SMTPException) as error:
                final = _is_refused(error) or time.time() - path.stat().st_mtime > _GIVE_UP_S
                _log.warning(
                    "a mail is given up" if final else "mail waits",
                    extra={"mail": path.name, "cause": f"{type(error).__name__}: {error}"},
                )
                if not final:
                    return False
            path.unlink()
        return True

    def _send(self, path: Path) -> None:
        message = message_from_bytes(path.read_bytes(), policy=policy.default)
        server = smtplib.SMTP(self._host, self._port, timeout=_PATIENCE_S)
        try:
            server.send_message(message)
            with contextlib.suppress(OSError, smtplib.SMTPException):  # the mail is the server's now
                server.quit()
        finally:
            server.close()


def _is_refused(error: Exception) -> bool:
    """
    Whether the server will never take it.
    """
    match error:
        case smtplib.SMTPRecipientsRefused(recipients=refused):
            return all(code >= _REFUSED for code, _ in refused.values())
        case smtplib.SMTPSenderRefused() | smtplib.SMTPDataError():
            return error.smtp_code >= _REFUSED
        case _:
            return False
