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
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Final, NamedTuple

from kettle.jobs.mail_recipients import recipients
from kettle.retry.backoff import Backoff
from kettle.retry.loop import Waits
from kettle_services.shadow.projections.mail import Mail
from kettle_services.shadow.settings import ShadowSettings

_log: Final = logging.getLogger(__name__)
_PATIENCE_S: Final = 30.0
"""For one answer of the mail server."""
_LONGEST_PAUSE_S: Final = 3600.0
_GIVE_UP_S: Final = 5 * 86400.0
"""So long mail servers try to deliver, by custom."""
_HOUR_S: Final = 3600.0
_MOST_WAITING: Final = 10_000
"""Files of mails: as many as one can still list and send in an hour when the mail server is there again."""
_REFUSED: Final = 500
_SMTP: Final = 25
_SUFFIX: Final = ".eml"


class MailOutbox:
    """
    Mails that wait, one file each, below `directory`; a sink for `kettle.userlog.follow`.

    Frames up to `head` are older than this outbox: no mails are made for them. Of the mails about one owner's jobs
    `settings.mail_hourly` are kept in an hour, and a limited number in all; the number of dropped mails is logged once
    in an hour.
    """

    def __init__(
        self, directory: Path, settings: ShadowSettings, *, head: int, restored: bool = False
    ) -> None:
        """
        `restored`: the log is an older copy, in which frames have other numbers than those that are marked as written.
        """
        self._directory = directory
        self._domain = settings.mail_domain or socket.getfqdn()
        self._from = settings.mail_from or f"kettle@{self._domain}"
        self._hourly = settings.mail_hourly
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._counted: Counter[str] = Counter()
        """Mails of this hour by owner, also those that were dropped."""
        self._dropped: Counter[str] = Counter()
        self.filled: Final = asyncio.Event()
        self.filled.set()
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._mark = directory / "written"
        if restored and self._mark.exists():
            self._begin_again()
        if not self._mark.exists():
            self._put(self._mark, str(head).encode())
        self._written = int(self._mark.read_bytes())

    def _begin_again(self) -> None:
        """Frames are counted as the log has them now: mails that wait are of none of these."""
        self._written = int(self._mark.read_bytes())
        waiting = self.waiting()
        for number, path in enumerate(waiting):
            path.replace(self._directory / f"{0:020}-{time.time_ns()}-{number:06}{_SUFFIX}")
        for path in self._directory.glob(f"*{_SUFFIX}"):
            if not path.name.startswith(f"{0:020}-"):
                path.unlink()  # it was not marked, and is made once more if its frame is there
        self._put(self._mark, b"0")

    def write(self, added: Mapping[int, Sequence[Mail]]) -> None:
        """
        Keep the mails about some frames; a frame that comes again is passed over.  Blocks on the disk.

        Raises OSError if the disk does not take them.
        """
        for frame, mails in added.items():
            self._keep(frame, mails)

    def _keep(self, frame: int, mails: Sequence[Mail]) -> None:
        if frame <= self._written:
            return
        waiting = len(self.waiting())
        for number, mail in enumerate(mails):
            path = self._directory / f"{frame:020}-{number:06}{_SUFFIX}"
            if not self._has_room(mail.owner, waiting):
                continue
            if (message := self._made(mail, path.stem)) is not None:
                self._put(path, message)
                waiting += 1
        self._put(self._mark, str(frame).encode())
        self._written = frame
        self._loop.call_soon_threadsafe(self.filled.set)

    def waiting(self) -> list[Path]:
        """
        The files of the mails that wait, oldest first; those of a frame that is not marked as written may be written again.
        """
        found = sorted(self._directory.glob(f"*{_SUFFIX}"))
        return [path for path in found if int(path.name.partition("-")[0]) <= self._written]

    def _has_room(self, owner: str, waiting: int) -> bool:
        with self._lock:
            if not self._counted:
                self._loop.call_soon_threadsafe(self._loop.call_later, _HOUR_S, self._begin_hour)
            self._counted[owner] += 1
            if self._counted[owner] <= self._hourly and waiting < _MOST_WAITING:
                return True
            self._dropped[owner] += 1
            return False

    def _begin_hour(self) -> None:
        with self._lock:
            dropped = dict(self._dropped)
            self._counted.clear()
            self._dropped.clear()
        if dropped:
            what = "%d mails were dropped in the last hour: there are too many"
            _log.warning(what, sum(dropped.values()), extra={"by_owner": dropped})

    def _made(self, mail: Mail, name: str) -> bytes | None:
        try:
            return bytes(self._message(mail, name))
        except Exception as error:  # noqa: BLE001 - the parser may raise anything for submitters' input
            # errors; the frame would come again after each restart, and no job would be looked after for this mail.
            _log.warning("no mail can be sent to %r: %s: %s", mail.to, type(error).__name__, error)
            return None

    def _message(self, mail: Mail, name: str) -> EmailMessage:
        message = EmailMessage()
        message["From"] = self._from
        names = recipients(mail.to)
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


class Deferred(NamedTuple):
    """A mail that was not taken: how often, and when it is tried again, on `time.monotonic`."""

    times: int
    due: float


class Postman:
    """
    Takes mails from an outbox to the mail server.

    A mail that is not taken waits for itself: only when there is no server all others wait too.
    """

    def __init__(self, outbox: MailOutbox, settings: ShadowSettings) -> None:
        self._outbox = outbox
        host, _, port = settings.mail_server.partition(":")
        self._host, self._port = host, int(port or _SMTP)
        self._backoff = Backoff(first=settings.mail_retry, longest=_LONGEST_PAUSE_S, spread=0.0)
        self._deferred: dict[Path, Deferred] = {}

    async def run(self) -> None:
        """Deliver mails; never returns."""
        waits = Waits(self._backoff)
        while True:
            self._outbox.filled.clear()
            if await self._round():
                waits.reset()
                await self._more()
            else:
                await waits.wait()

    async def _more(self) -> None:
        """Wait for a new mail, or until one that was not taken is due."""
        due = min((each.due for each in self._deferred.values()), default=None)
        try:
            async with asyncio.timeout(None if due is None else max(0.0, due - time.monotonic())):
                await self._outbox.filled.wait()
        except TimeoutError:
            pass  # it is due

    async def _round(self) -> bool:
        """Try to send all that waits and is due; whether there is a server."""
        waiting = await asyncio.to_thread(self._outbox.waiting)
        self._deferred = {path: self._deferred[path] for path in waiting if path in self._deferred}
        for path in waiting:
            if self._deferred.get(path, _NEVER).due > time.monotonic():
                continue
            try:
                server = await asyncio.to_thread(self._connect)
            except (OSError, smtplib.SMTPException) as error:
                _log.warning("the mail server is away", extra={"cause": f"{type(error).__name__}: {error}"})
                for old in filter(_is_over, waiting):
                    self._not_taken(old, error, final=True)
                return False
            try:
                await asyncio.to_thread(_send, server, path)
            except Exception as error:  # noqa: BLE001 - one mail, whatever its text does to libraries, stops no other
                self._not_taken(path, error, final=_is_final(error) or _is_over(path))
            else:
                path.unlink(missing_ok=True)
        return True

    def _not_taken(self, path: Path, error: Exception, *, final: bool) -> None:
        _log.warning(
            "a mail is given up" if final else "mail waits",
            extra={"mail": path.name, "cause": f"{type(error).__name__}: {error}"},
        )
        if final:
            path.unlink(missing_ok=True)
            return
        times = self._deferred.get(path, _NEVER).times
        pause = self._backoff.length(times)
        self._deferred[path] = Deferred(times + 1, time.monotonic() + pause)

    def _connect(self) -> smtplib.SMTP:
        """A server that takes mail now: what goes wrong until then is not about a mail."""
        server = smtplib.SMTP(self._host, self._port, timeout=_PATIENCE_S)
        try:
            server.ehlo_or_helo_if_needed()
        except BaseException:
            server.close()
            raise
        return server


_NEVER: Final = Deferred(0, 0.0)


def _send(server: smtplib.SMTP, path: Path) -> None:
    try:
        refused = server.send_message(message_from_bytes(path.read_bytes(), policy=policy.default))
        with contextlib.suppress(OSError, smtplib.SMTPException):  # the mail is the server's now
            server.quit()
    finally:
        server.close()
    if refused:
        _log.warning("some recipients are refused", extra={"mail": path.name, "refused": sorted(refused)})


def _is_over(path: Path) -> bool:
    return path.exists() and time.time() - path.stat().st_mtime > _GIVE_UP_S


def _is_final(error: Exception) -> bool:
    """Whether no repeat would change it; what nobody thought of is none either."""
    match error:
        case smtplib.SMTPRecipientsRefused(recipients=refused):
            return all(code >= _REFUSED for code, _ in refused.values())
        case smtplib.SMTPResponseException():
            return error.smtp_code >= _REFUSED
        case smtplib.SMTPNotSupportedError():
            return True
        case _:
            return not isinstance(error, OSError)
