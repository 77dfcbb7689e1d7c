"""Requests that are none, or cannot be: refused with a sentence, without a trace and without the token."""

import asyncio
import json
import logging
from contextlib import suppress
from urllib.parse import urlsplit

import pytest

from kettle.testing.patience import PATIENCE_S

from .conftest import Office

SECRET = "t0k3n"
FORM = "application/x-www-form-urlencoded"


async def sent(office: Office, data: bytes) -> bytes:
    """What comes back for these bytes."""
    place = urlsplit(office.url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    try:
        writer.write(data)
        async with asyncio.timeout(PATIENCE_S):
            return await reader.read()
    finally:
        writer.close()
        with suppress(OSError):  # the server may have ended it
            await writer.wait_closed()


@pytest.mark.parametrize(
    "lines",
    [
        b"nonsense t0k3n\r\n\r\n",
        b"GET /v1/whoami HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer t0k3n\x00\r\n\r\n",
        b"GET /v1/whoami HTTP/1.1\r\nHost: x\r\nAuthorization : Bearer t0k3n\r\n\r\n",
        b"GET /v1/who\x00ami?token=t0k3n HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /v1/whoami HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer t0k3n" + b"x" * 90_000 + b"\r\n\r\n",
        b"POST /v1/token HTTP/1.1\r\nHost: x\r\nContent-Length: t0k3n\r\n\r\n",
    ],
    ids=[
        "no method",
        "a control character",
        "a space before the colon",
        "in the path",
        "too long",
        "no number",
    ],
)
async def test_what_is_no_request_is_not_repeated_to_anybody(
    office: Office, lines: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither in the answer nor in the log, where aiohttp would show the line that it does not understand."""
    with caplog.at_level(logging.DEBUG):
        answer = await sent(office, lines)
    assert answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.0 400 "))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"Content-Type: application/problem+json" in head
    assert "request.malformed" == json.loads(body)["code"]
    assert SECRET not in f"{answer!r}{caplog.text}"
    assert "Traceback" not in caplog.text


@pytest.mark.parametrize(
    ("kind", "body", "status", "code"),
    [
        (
            f"{FORM}; charset=nonsense",
            b"grant_type=refresh_token&refresh_token=t0k3n",
            400,
            "request.malformed",
        ),
        (
            f"{FORM}; charset=utf-8",
            b"grant_type=refresh_token&refresh_token=t0k3n\xff",
            400,
            "request.malformed",
        ),
        ("application/json", b'{"refresh_token": "t0k3n"}', 400, "request.malformed"),
        (FORM, b"grant_type=refresh_token&refresh_token=t0k3n&refresh_token=t0k3n", 400, "request.malformed"),
        (FORM, b"grant_type=password&password=t0k3n", 400, "grant.unsupported"),
        (FORM, b"grant_type=refresh_token&refresh_token=t0k3n", 400, "token.malformed"),
        (FORM, b"grant_type=client_credentials&client_id=x&client_secret=t0k3n", 401, "client.unknown"),
        (FORM, b"t0k3n=" + b"x" * 70_000, 413, "request.too_large"),
    ],
    ids=[
        "unknown charset",
        "wrong charset",
        "JSON",
        "twice",
        "a password",
        "no token",
        "no client",
        "too large",
    ],
)
async def test_what_cannot_be_is_refused_with_its_code(
    office: Office, kind: str, body: bytes, status: int, code: str, caplog: pytest.LogCaptureFixture
) -> None:
    """As a problem with one sentence, and no server error."""
    with caplog.at_level(logging.DEBUG):
        async with office.http.post(
            f"{office.url}/v1/token", data=body, headers={"Content-Type": kind}
        ) as answer:
            told = await answer.json(content_type="application/problem+json")
    assert (status, code) == (answer.status, told["code"])
    assert "" != told["detail"]
    assert SECRET not in f"{told}{answer.headers}{caplog.text}"
    assert "Traceback" not in caplog.text
