"""What a gateway answers to requests that no browser sends, and to those of other sites' pages."""

import asyncio
import ssl
from collections.abc import AsyncGenerator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast
from urllib.parse import urljoin, urlsplit

import pytest_asyncio

from kettle.pki.authority_files import AuthorityFiles
from kettle.pki.contexts import Listener, client_context
from kettle.testing.patience import PATIENCE_S
from kettle_services.gateway.rest.connections import PersonConnections
from kettle_services.gateway.rest.files import FileQuestions
from kettle_services.gateway.rest.past import PastQuestions
from kettle_services.gateway.rest.streams import Streams
from kettle_wire.rest import files

from .browsing import OPENED, PROGRAM, TOKEN, Gateway, gateway_at, sent

SMUGGLED = b"GET /login HTTP/1.1\r\nHost: x\r\n\r\n"
"""What a proxy in front would take for a part of a body."""

ASSETS = (
    "/assets/../assets.py",
    "/assets/..%2fassets.py",
    "/assets/%2e%2e%2fassets.py",
    "/assets/%2e%2e/assets.py",
    "/assets/..%5cassets.py",
    "/assets//etc/passwd",
    "/assets/%2fetc%2fpasswd",
    "/assets/kettle.css",
    "/assets/LICENSE.uplot",
    "/assets/kettle.css%00.js",
    "/assets/%ff",
    "/assets/",
)
INSIDE = ("../x", "a/../../x", "..%2fx", "a%2f..%2f..%2fx", "%2fetc%2fpasswd", "/etc/passwd", "a%00b")
"""Paths of files in the sandbox of a job that are in none."""
QUESTIONS = ("GET /login", f"GET /login?link={'x' * 43}", "GET /favicon.ico", "GET /nowhere", "GET /v2/jobs")
TARGETS = (
    "https://evil.example/",
    "//evil.example/",
    "/\\evil.example/",
    "\\\\evil.example",
    "/\t/evil.example/",
    "\t//evil.example/",
    " //evil.example/",
    "javascript:alert(1)",
    "/..//evil.example/",
    "/x\r\nSet-Cookie: a=b",
)
ENDS = (
    "Content-Length: 4\r\nTransfer-Encoding: chunked",
    "Transfer-Encoding: chunked\r\nContent-Length: 4",
    "Content-Length: 4\r\nContent-Length: 0",
    "Content-Length: +4",
    "Content-Length: -1",
    "Content-Length: 4,4",
    "Transfer-Encoding: xchunked",
    "Transfer-Encoding: chunked, chunked",
    "Transfer-Encoding: chunked, identity",
    "Transfer-Encoding : chunked",
    "Transfer-Encoding\x0b: chunked",
    " Transfer-Encoding: chunked",
)
"""Headers by which two servers could see a request end at different places."""


@pytest_asyncio.fixture
async def gateway(tmp_path: Path) -> AsyncGenerator[Gateway]:
    nobody, nothing = cast("PersonConnections", None), cast("PastQuestions", None)
    of_files = FileQuestions(nobody, nothing, Streams(1, 1))
    async with gateway_at(tmp_path, handlers={files.GET_FILE: of_files.get}) as made:
        yield made


async def answered(gateway: Gateway, data: bytes) -> bytes:
    """All that the server says to these bytes before it closes the connection."""
    place = urlsplit(gateway.url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    try:
        writer.write(data)
        async with asyncio.timeout(PATIENCE_S):
            return await reader.read()
    finally:
        writer.close()
        with suppress(OSError):  # the server may have ended it
            await writer.wait_closed()


def get(path: str, *headers: str) -> bytes:
    """A request, exactly like this."""
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: x", "Connection: close", *headers, "", ""]).encode()


async def test_only_what_pages_need_is_served(gateway: Gateway) -> None:
    """An address that leads out of the directory, or to a file without its hash, leads to nothing."""
    for path in ASSETS:
        answer = await answered(gateway, get(path))
        assert answer.startswith(b"HTTP/1.1 404 "), (path, answer)


async def test_no_file_is_outside_of_a_sandbox(gateway: Gateway) -> None:
    """A path that leads out of it is refused before anybody looks for it."""
    for path in INSIDE:
        request = get(f"/v2/jobs/1.0/files/{path}", f"Authorization: {PROGRAM['Authorization']}")
        answer = await answered(gateway, request)
        assert answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 404 ", b"HTTP/1.1 422 ")), (path, answer)
        assert b"application/problem+json" in answer


async def test_what_a_request_says_of_the_host_stands_nowhere(gateway: Gateway) -> None:
    """A name that a proxy passes on is no part of a link, of a way that a browser is led, or of a page."""
    said = (
        "Host: evil.example",
        "X-Forwarded-Host: evil.example",
        "X-Forwarded-Proto: evil.example",
        "X-Forwarded-Prefix: //evil.example",
        "Forwarded: host=evil.example",
        "X-Original-URL: //evil.example",
        "Accept: text/html",
        "Connection: close",
    )
    for question in QUESTIONS:
        answer = await answered(gateway, "\r\n".join([f"{question} HTTP/1.1", *said, "", ""]).encode())
        assert answer.startswith(b"HTTP/1.1 "), question
        assert b"evil.example" not in answer, question


async def test_who_signs_in_is_led_to_no_other_site(gateway: Gateway) -> None:
    """Whatever the address says that somebody has sent: the way goes on here."""
    async with gateway.browser() as browser:
        for target in TARGETS:
            form = {"token": TOKEN, "next": target}
            status, response = await sent(browser, "POST", "/login", data=form, headers=gateway.own_pages)
            led = urlsplit(urljoin(f"{gateway.url}/login", response.headers["Location"]))
            assert (303, gateway.url) == (status, f"{led.scheme}://{led.netloc}"), target
            assert "a" not in response.cookies


async def test_nothing_is_hidden_in_the_body_of_another_request(gateway: Gateway) -> None:
    """
    Where a proxy and this server could see different ends of a request, it is refused, and what follows is not answered.
    """
    for headers in ENDS:
        request = f"POST /login HTTP/1.1\r\nHost: x\r\n{headers}\r\n\r\n0\r\n\r\n".encode()
        answer = await answered(gateway, request + SMUGGLED)
        assert b" 400 " == answer[8:13], (headers, answer)
        assert 1 == answer.count(b"\r\nServer: "), (headers, answer)


async def test_what_is_too_long_is_refused(gateway: Gateway) -> None:
    """Nothing of it is repeated."""
    for request in (
        get(f"/{'x' * 20_000}"),
        get("/login", f"X-Long: {'x' * 20_000}"),
        get("/login", f"Cookie: {'a=b; ' * 4_000}"),
        get("/login", *(f"X-{number}: x" for number in range(2_000))),
    ):
        answer = await answered(gateway, request)
        assert b" 400 " == answer[8:13], (request[:40], answer[:100])
        assert len(answer) < 1_000


async def test_no_other_site_uses_what_is_here(gateway: Gateway) -> None:
    """
    A stream or a list that a page of another site has a browser fetch with our cookie, from another port of this machine for example,
    is refused; to lead here is allowed.
    """
    async with gateway.signed_in() as browser:
        for site, mode in (("cross-site", "no-cors"), ("same-site", "cors"), ("same-site", "no-cors")):
            said = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode, "Origin": "https://evil.example"}
            for path in ("/v2/events", "/v2/changes", "/live/", "/v2/jobs"):
                status, response = await sent(browser, "GET", path, headers=said)
                assert 403 == status, path
                assert not [name for name in response.headers if name.startswith("Access-Control-")]
            led = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate"}
            assert 200 == (await sent(browser, "GET", "/v2/jobs", headers=led))[0]


async def test_over_https_the_cookie_is_for_this_host_alone(tmp_path: Path) -> None:
    """No other host, no path and no connection in clear text gives the browser one, or gets it."""
    authority = AuthorityFiles(tmp_path / "pki")
    now = datetime.now(UTC)
    ca = str(authority.make("Test", now=now).certificate)
    shown = authority.issue(["127.0.0.1"], "server", now=now)
    listener = Listener(certificate=str(shown.certificate), key=str(shown.key))
    async with gateway_at(tmp_path, encryption=listener.context()) as gateway, gateway.browser() as browser:
        trusting: ssl.SSLContext = client_context(ca)
        form: dict[str, Any] = {"data": {"token": TOKEN}, "headers": gateway.own_pages, "ssl": trusting}
        status, response = await sent(browser, "POST", "/login", **form)
        assert 303 == status
        name, *words = response.headers["Set-Cookie"].split("; ")
        assert name.startswith("__Host-kettle-session=")
        assert {"HttpOnly", "Path=/", "SameSite=Strict", "Secure"} == set(words)
        assert 200 == (await sent(browser, "GET", "/v2/jobs", ssl=trusting))[0]


async def test_another_address_in_a_header_is_no_other_guesser(tmp_path: Path) -> None:
    """Who invents codes, by address or form, is counted by the connection, whatever is said of a proxy."""
    statuses: list[int] = []
    async with gateway_at(tmp_path, rate=0.01) as gateway, gateway.browser() as browser:
        for number in range(22):
            said = {"X-Forwarded-For": f"192.0.2.{number}", "Forwarded": f"for=192.0.2.{number}"}
            if number % 2:
                status, _ = await sent(browser, "GET", f"/login?link={number}", headers={**OPENED, **said})
            else:
                form = {"link": str(number)}
                status, _ = await sent(
                    browser, "POST", "/login", data=form, headers={**gateway.own_pages, **said}
                )
            statuses.append(status)
    assert {403, 429} == set(statuses)
    assert 429 == statuses[-1]
