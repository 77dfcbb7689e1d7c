"""Mails that cannot be made or sent: they stop neither other mails nor the shadow."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from email.message import EmailMessage
from pathlib import Path

import pytest

from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.held_port import held_port
from kettle_services.shadow import wiring
from kettle_services.shadow.projections import mail_delivery
from kettle_services.shadow.projections.mail import Mail
from kettle_services.shadow.projections.mail_delivery import MailOutbox, Postman
from kettle_services.shadow.settings import ShadowSettings

from .fakes import Side, until


class MailServer:
    """
    Answers a recipient with what `answers` has for the name before the `@`, takes the others; "" hangs up.
    """

    def __init__(self, **answers: str) -> None:
        self.answers = answers
        self.taken: list[str] = []
        self.asked: list[str] = []

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 test\r\n")
        names: list[str] = []
        while line := (await reader.readline()).strip().decode():
            answer = "250 ok"
            if line.upper() == "DATA":
                writer.write(b"354 go on\r\n")
                await reader.readuntil(b"\r\n.\r\n")
                self.taken += names
            elif line.upper().startswith("RCPT TO:<"):
                name = line[9:].partition("@")[0]
                self.asked.append(name)
                answer = self.answers.get(name, answer)
                names += [name] if answer.startswith("2") else []
            if not answer:
                break
            writer.write(f"{answer}\r\n".encode())
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


@pytest.fixture
def settings(tmp_path: Path) -> ShadowSettings:
    return ShadowSettings(
        pool="test",
        home=str(tmp_path),
        mail_server=f"127.0.0.1:{held_port()}",
        mail_domain="example.org",
        mail_retry=0.05,
    )


@asynccontextmanager
async def sending(outbox: MailOutbox, settings: ShadowSettings, server: MailServer) -> AsyncGenerator[None]:
    """A postman and a mail server that he finds."""
    port = int(settings.mail_server.partition(":")[2])
    async with await asyncio.start_server(server.talk, "127.0.0.1", port):
        postman = asyncio.create_task(Postman(outbox, settings).run())
        try:
            yield
        finally:
            assert not postman.done(), postman
            postman.cancel()


def mail(to: str, owner: str = "ann") -> Mail:
    return Mail(to=to, subject="s", body="b", owner=owner)


@pytest.mark.parametrize("to", ["a@", "@", "a@b\nBcc: c@d", "<", "a b", "ä@example.org", ",", "a," * 11])
async def test_an_address_that_is_none_costs_its_mail_only(
    tmp_path: Path, settings: ShadowSettings, to: str
) -> None:
    """The mails before and behind it in the frame are kept, and so is how far the record is read."""
    outbox = MailOutbox(tmp_path / "mail", settings, head=1)
    outbox.write({2: [mail("bob"), mail(to), mail("eve@example.com")]})
    texts = [path.read_text() for path in outbox.waiting()]
    assert ["To: bob@example.org", "To: eve@example.com"] == [
        line for text in texts for line in text.splitlines() if line.startswith("To:")
    ]
    assert b"2" == (tmp_path / "mail" / "written").read_bytes()


async def test_mails_wait_on_when_the_log_was_restored(tmp_path: Path, settings: ShadowSettings) -> None:
    """And those of frames that have the numbers of lost ones are kept beside them."""
    before = MailOutbox(tmp_path / "mail", settings, head=1)
    before.write({9: [mail("bob"), mail("eve")]})

    outbox = MailOutbox(tmp_path / "mail", settings, head=5, restored=True)
    assert 2 == len(outbox.waiting())
    outbox.write({6: [mail("ann")], 9: [mail("dan")]})
    assert ["bob", "eve", "ann", "dan"] == [
        line.split()[1].partition("@")[0]
        for path in outbox.waiting()
        for line in path.read_text().splitlines()
        if line.startswith("To:")
    ]


async def test_a_mail_is_sent_when_its_frame_is_marked_as_written(
    tmp_path: Path, settings: ShadowSettings
) -> None:
    """One that was left by a shadow that was killed before that is written again, and sent once."""
    before = MailOutbox(tmp_path / "mail", settings, head=1)
    before.write({2: [mail("bob")]})
    (tmp_path / "mail" / "written").write_bytes(b"1")

    outbox, server = MailOutbox(tmp_path / "mail", settings, head=1), MailServer()
    assert [] == outbox.waiting()
    outbox.write({2: [mail("bob")]})
    async with sending(outbox, settings, server):
        await until(lambda: not outbox.waiting())
    assert ["bob"] == server.taken


async def test_whatever_a_mail_does_to_libraries_stops_no_other(
    tmp_path: Path, settings: ShadowSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error that nobody thought of, when it is made and when it is sent."""
    made = EmailMessage.set_content

    def fails(message: EmailMessage, text: str) -> None:
        if text == "bad":
            raise IndexError("string index out of range")
        made(message, text)

    monkeypatch.setattr(EmailMessage, "set_content", fails)
    outbox, server = MailOutbox(tmp_path / "mail", settings, head=1), MailServer()
    outbox.write({2: [mail("bob")._replace(body="bad"), mail("bob"), mail("eve")]})
    first, _ = outbox.waiting()
    first.write_bytes(b"To: a@\r\nFrom: b\r\n\r\n")
    async with sending(outbox, settings, server):
        await until(lambda: not outbox.waiting())
    assert ["eve"] == server.taken


@pytest.mark.parametrize("answer", ["450 later", "421 closing", ""])
async def test_a_mail_that_is_not_taken_stops_no_other(
    tmp_path: Path, settings: ShadowSettings, answer: str
) -> None:
    """It waits for itself, also if the server hangs up over it, and is sent when it is taken at last."""
    outbox, server = MailOutbox(tmp_path / "mail", settings, head=1), MailServer(full=answer)
    outbox.write({2: [mail("full"), mail("bob"), mail("eve")]})
    async with sending(outbox, settings, server):
        await until(lambda: server.taken == ["bob", "eve"])
        await until(lambda: len(server.asked) > 3)
        outbox.write({3: [mail("dan")]})
        await until(lambda: "dan" in server.taken)
        server.answers.clear()
        await until(lambda: not outbox.waiting())
    assert ["bob", "eve", "dan", "full"] == server.taken


async def test_what_no_server_would_take_is_given_up(tmp_path: Path, settings: ShadowSettings) -> None:
    """A recipient that does not exist, and an address that takes an extension which the server has not."""
    outbox, server = MailOutbox(tmp_path / "mail", settings, head=1), MailServer(nobody="550 no")
    outbox.write({2: [mail("nobody"), mail("bob"), mail("eve")]})
    path = outbox.waiting()[1]
    path.write_bytes("To: bob@exämple.org\r\nFrom: b@c\r\n\r\n".encode())
    async with sending(outbox, settings, server):
        await until(lambda: not outbox.waiting())
    assert ["eve"] == server.taken


async def test_too_many_mails_are_dropped_and_said_once(
    tmp_path: Path,
    settings: ShadowSettings,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """
    Of each owner so many in an hour, of all together so many on the disk; in the next hour there is room again.
    """
    monkeypatch.setattr(mail_delivery, "_MOST_WAITING", 5)
    outbox = MailOutbox(tmp_path / "mail", ShadowSettings(pool="test", home=".", mail_hourly=2), head=1)
    with caplog.at_level(logging.WARNING):
        outbox.write({2: [mail("x") for _ in range(9)] + [mail("x", "bob")]})
        assert (3, []) == (len(outbox.waiting()), caplog.messages)
        outbox.write({3: [mail("x", owner) for owner in ("eve", "eve", "dan")]})
        assert 5 == len(outbox.waiting())

        monkeypatch.setattr(mail_delivery, "_HOUR_S", 0.0)
        outbox = MailOutbox(tmp_path / "mail", ShadowSettings(pool="test", home=".", mail_hourly=2), head=1)
        outbox.waiting()[0].unlink()
        outbox.write({4: [mail("x"), mail("x"), mail("x")]})
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.to_thread(lambda: None)
            while not caplog.messages:
                await asyncio.sleep(0)
        outbox.waiting()[0].unlink()
        outbox.write({5: [mail("x")]})

    assert ["2 mails were dropped in the last hour: there are too many"] == caplog.messages
    assert 5 == len(outbox.waiting())


async def test_trouble_with_mail_ends_no_shadow(
    side: Side, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A disk that takes no mail is an error in the log, again and again; jobs are looked after."""
    tried = 0

    async def full(*_: object) -> None:
        nonlocal tried
        tried += 1
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(wiring, "_send_mail", full)
    job = side.assignment()
    async with side.shadow(mail_server="127.0.0.1:1", mail_retry=0.01):
        await until(lambda: tried > 2)
        await side.schedd.hand_over(job)
        await until(lambda: side.startd.runs)
    assert "mail is not sent for the moment" in caplog.text
