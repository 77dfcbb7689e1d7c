"""
What people, jobs and strangers try at the gateway's side of published services; real connections, and a job that sees each byte.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import aiohttp
import pytest

from kettle.published.errors import StreamCode
from kettle.testing.patience import PATIENCE_S
from kettle_services.gateway.domain.published_addresses import BadAddressError, read_address
from kettle_services.gateway.domain.published_headers import Visit, from_job, place, to_job
from kettle_services.gateway.domain.service_origins import ServiceOrigins, why_no_services_url
from kettle_services.gateway.published.job_lookup import QueuedJob
from kettle_services.gateway.published.service_pages import ServicePages
from kettle_services.gateway.published.service_sessions import ServiceSessions
from kettle_services.gateway.rest.application import RequestLimits
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_wire.jobs import JobId

from .published_parts import (
    Gateway,
    MadeUpJobs,
    ask,
    gateway,
    gone,
    job_side,
    raw_server,
    until,
    upgraded,
    web_server,
)
from .smuggling import LAST, PASSED_ON, REFUSED

HEAD = "Host: g\r\nAuthorization: Bearer alice\r\n"
VISIT = Visit("alice", "192.0.2.1", "https", "g.example:8443", "/jobs/12.0/web", strips=True)


class Seen:
    """What has come to the job."""

    def __init__(self) -> None:
        self.data = b""


@asynccontextmanager
async def watched(
    answer: bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", patience: float = 30.0
) -> AsyncGenerator[tuple[Gateway, Seen]]:
    """A gateway, and a job that answers each piece that comes with the same bytes."""
    seen = Seen()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            seen.data += data
            writer.write(answer)
            await writer.drain()

    async with (
        gateway(patience) as made,
        raw_server(serve) as port,
        job_side(made.port, f"web:{port}/http"),
    ):
        made.jobs.put()
        yield made, seen


SMUGGLED = [
    "POST {p} HTTP/1.1\r\n{h}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /x HTTP/1.1\r\n\r\n",
    "POST {p} HTTP/1.1\r\n{h}Content-Length: 3\r\nContent-Length: 30\r\n\r\nabc",
    "POST {p} HTTP/1.1\r\n{h}Content-Length: +3\r\n\r\nabc",
    "POST {p} HTTP/1.1\r\n{h}Content-Length: 3, 3\r\n\r\nabc",
    "POST {p} HTTP/1.1\r\n{h}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "POST {p} HTTP/1.1\r\n{h}Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
    "POST {p} HTTP/1.1\r\n{h}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    "POST {p} HTTP/1.1\r\n{h}Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n",
    "GET {p} HTTP/1.1\r\n{h}Host: other\r\n\r\n",
    "GET {p} HTTP/1.1\r\n{h}X-A: b\r\n folded: c\r\n\r\n",
    "GET {p} HTTP/1.1\r\n{h}X-A: b\rX-B: c\r\n\r\n",
    "GET {p} HTTP/1.1\r\n{h}X-A: b\x00\r\n\r\n",
    "GET http://other/ HTTP/1.1\r\n{h}\r\n",
    "CONNECT web:80 HTTP/1.1\r\n{h}\r\n",
    "TRACE {p} HTTP/1.1\r\n{h}\r\n",
    "GET {p}a b HTTP/1.1\r\n{h}\r\n",
]


@pytest.mark.parametrize("request_text", SMUGGLED)
async def test_what_can_be_read_in_two_ways_never_reaches_the_job(request_text: str) -> None:
    """It is refused, and the job sees no byte of it."""
    text = request_text.format(p="/jobs/12.0/web/", h=HEAD)
    async with watched() as (made, seen):
        answer = await ask(made.port, text.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n", 1))
        assert answer.startswith((b"HTTP/1.1 ", b"HTTP/1.0 ")), answer
        assert answer[9:10] == b"4", answer
        assert seen.data == b""


def framed(data: bytes) -> int:
    """How many requests these bytes are, each with a body as long as its head says."""
    count = 0
    while data:
        head, end, data = data.partition(b"\r\n\r\n")
        assert end, head
        lines = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
        assert not {b"transfer-encoding", b"content-length"} <= lines.keys(), head
        if b"transfer-encoding" in lines:
            assert b"chunked" == lines[b"transfer-encoding"], head
            while (size := int(data.partition(b"\r\n")[0], 16)) > 0:
                data = data.partition(b"\r\n")[2][size + 2 :]
            data = data.removeprefix(b"0\r\n\r\n")
        else:
            data = data[int(lines.get(b"content-length", b"0")) :]
        count += 1
    return count


async def test_no_request_is_smuggled_by_another_one() -> None:
    """
    Of a corpus of heads and bodies: what is ambiguous does not get to the job, and the rest is one request there.
    """
    places = {"p": "/jobs/12.0/web/", "h": HEAD, "l": HEAD.replace("\r\n", "\n")}
    async with watched() as (made, seen):
        for name, text in REFUSED.items():
            answer = await ask(made.port, text.format(**places) + LAST)
            assert b"4" == answer[9:10], (name, answer)
            assert b"" == seen.data, (name, seen.data)
        for name, text in PASSED_ON.items():
            seen.data = b""
            await ask(made.port, text.format(**places) + LAST)
            await until(lambda: not len(made.uses))
            assert 1 == framed(seen.data), (name, seen.data)
            assert b"transfer_encoding" not in seen.data.lower(), name


BAD_PATHS = [
    "/jobs/12.0/web/../../13.0/web/", "/jobs/12.0/web/%2e%2e/x", "/jobs/12.0/web/.%2E/x", "/jobs/12.0/web/a%2fb", "/jobs/12.0/web/a%5cb",
    "/jobs/12.0/web//x", "/jobs/12.0/web/%00", "/jobs/12.0/web/%zz", "/jobs/012.0/web/", "/jobs/12.0/WEB/", "/jobs/12%2e0/web/", "//jobs/12.0/web/",
    "/jobs/12.0//web/", "/jobs/99999999999.0/web/", "/jobs/12.0/web/;/..;/x", "/jobs/12.0/web/\\x", "/jobs/12.0/web/#x", "/jobs/12.0/-web/",
    f"/jobs/12.0/web/{'a' * 20000}",
]  # fmt: skip


@pytest.mark.parametrize("path", BAD_PATHS)
async def test_no_path_leads_to_another_place(path: str) -> None:
    """It names a job, a service and a path in one way only, or nothing."""
    with pytest.raises(BadAddressError):
        read_address(path)
    async with watched() as (made, seen):
        answer = await ask(made.port, f"GET {path} HTTP/1.1\r\n{HEAD}Connection: close\r\n\r\n")
        assert answer[9:10] == b"4", answer
        assert seen.data == b""


async def test_the_job_sees_no_credential_and_no_word_of_others() -> None:
    """Neither the token, nor a cookie of the gateway, nor a header that passes for the gateway's own word."""
    said = [
        ("Authorization", "Bearer secret"), ("Cookie", "kettle-session=secret; __Host-kettle-session=secret; mine=1"), ("X-Forwarded-User", "root"),
        ("X_Forwarded_User", "root"), ("Forwarded", "for=evil"), ("X-Real-IP", "evil"), ("Connection", "close, X-Secret"), ("X-Secret", "secret"),
        ("Proxy-Authorization", "Basic secret"), ("X-Kettle-Anything", "secret"), ("Upgrade", "h2c"), ("HTTP2-Settings", "AAA"),
    ]  # fmt: skip
    for bearer in (True, False):
        sent = to_job(said, VISIT, bearer=bearer)
        assert not [pair for pair in sent if "secret" in pair[1] or "evil" in pair[1] or pair[1] == "root"]
        assert ("Cookie", "mine=1") in sent
        assert [("X-Forwarded-User", "alice")] == [pair for pair in sent if "user" in pair[0].lower()]
    assert ("Authorization", "token x") in to_job([("Authorization", "token x")], VISIT, bearer=False)


def test_the_job_speaks_for_its_own_path_only() -> None:
    """
    It sets no cookie of the gateway, of another job or of a whole domain, and no rule for the host; where it leads stays under its path.
    """
    answered = from_job(
        [
            ("Set-Cookie", "kettle-session=x; Path=/"), ("Set-Cookie", "__Host-a=x; Path=/; Secure"), ("Set-Cookie", "a=1; Domain=example.org; Path=/jobs/13.0/"),
            ("Strict-Transport-Security", "max-age=1"), ("Service-Worker-Allowed", "/"), ("Clear-Site-Data", '"*"'), ("Location", "/next?x=1"),
            ("Connection", "keep-alive"), ("Content-Length", "7"),
        ],
        VISIT,
    )  # fmt: skip
    assert [
        ("Set-Cookie", "a=1; Path=/jobs/12.0/web/jobs/13.0/"),
        ("Location", "/jobs/12.0/web/next?x=1"),
    ] == answered
    assert "/jobs/12.0/web/a" == place("http://g.example:8443/a", VISIT)
    assert "https://elsewhere/a" == place("https://elsewhere/a", VISIT)


GARBAGE = [
    b"SSH-2.0-x\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef", b"HTTP/9.9 200 OK\r\n\r\n",
    b"HTTP/1.1 99 x\r\n\r\n", b"HTTP/1.1 200 OK\r\nX: " + b"a" * 200_000 + b"\r\n\r\n", b"\x00" * 1000,
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
]  # fmt: skip


@pytest.mark.parametrize("answer", GARBAGE)
async def test_an_answer_that_is_none_is_a_sentence(answer: bytes) -> None:
    """502, and the gateway goes on."""
    async with watched(answer, patience=3.0) as (made, _):
        said = await ask(made.port, f"GET /jobs/12.0/web/ HTTP/1.1\r\n{HEAD}Connection: close\r\n\r\n")
        assert int(said.split()[1]) in {502, 504}, said
        await until(lambda: not len(made.uses))


async def test_a_job_that_never_ends_its_head_is_waited_for_so_long() -> None:
    """504 after the time that the settings give."""
    async with watched(b"HTTP/1.1 200 OK\r\nX-A: ", patience=0.5) as (made, _):
        said = await ask(made.port, f"GET /jobs/12.0/web/ HTTP/1.1\r\n{HEAD}Connection: close\r\n\r\n")
        assert b"504" == said.split()[1]
        await until(lambda: not len(made.uses))


async def test_one_person_does_not_take_all_places() -> None:
    """Of one person there are so many connections; others still come."""
    async with watched(b"") as (made, _):
        made.jobs.put(shared_with="bob")
        path = "/v2/jobs/12.0/services/web/connect"
        held = [await upgraded(made.port, path, "kettle-stream", "alice") for _ in range(100)]
        head, _, writer = await upgraded(made.port, path, "kettle-stream", "alice")
        assert b"429" == head.split()[1]
        await gone(writer)
        head, _, writer = await upgraded(made.port, path, "kettle-stream", "bob")
        assert b"101" == head.split()[1]
        for each in [writer, *(writer for _, _, writer in held)]:
            await gone(each)
        await until(lambda: not len(made.uses))


@pytest.mark.parametrize("ticket", ["", "nonsense", "alice", "12.0"])
async def test_nobody_publishes_without_a_ticket(ticket: str) -> None:
    """A token of a person, or of a job, is none."""
    async with gateway() as made:
        head, _, writer = await upgraded(made.port, "/v2/tunnels", "kettle-tunnel", ticket)
        await gone(writer)
        assert b"401" == head.split()[1]
        assert 0 == len(made.tunnels)


async def test_a_ticket_of_another_job_ends_the_tunnel() -> None:
    """Also one that is shown within it."""
    async with gateway() as made, job_side(made.port, "web:1/http") as tunnel:
        await until(lambda: len(made.tunnels) == 1)
        tunnel.renew("13.0/1")
        assert "another job" in await tunnel.ended()


@pytest.mark.parametrize(
    ("code", "status"),
    [(StreamCode.NOTHING_LISTENS, 502), (StreamCode.NOT_OF_THIS_JOB, 502), (StreamCode.NO_SUCH_SERVICE, 404), (StreamCode.SUSPENDED, 503)],
)  # fmt: skip
async def test_what_the_machine_refuses_is_a_sentence(code: StreamCode, status: int) -> None:
    """It is said for HTTP and for bytes."""
    async with gateway() as made, job_side(made.port, "web:1/http", refuses=code):
        made.jobs.put()
        await until(lambda: len(made.tunnels) == 1)
        said = await ask(made.port, f"GET /jobs/12.0/web/ HTTP/1.1\r\n{HEAD}Connection: close\r\n\r\n")
        assert status == int(said.split()[1])
        head, _, writer = await upgraded(
            made.port, "/v2/jobs/12.0/services/web/connect", "kettle-stream", "alice"
        )
        await gone(writer)
        assert status == int(head.split()[1])


def test_each_job_has_an_origin_of_its_own() -> None:
    """Of another access point's job of the same number too; without a star there is one for all."""
    origins = ServiceOrigins("https://*.jobs.example.org")
    jobs = [("a", JobId(1, 0)), ("b", JobId(1, 0)), ("a", JobId(10, 0)), ("a", JobId(1, 1))]
    assert 4 == len({origins.of(*job) for job in jobs})
    assert not origins.shared
    assert ServiceOrigins("https://jobs.example.org").shared


@pytest.mark.parametrize(
    "url", ["ftp://x", "https://", "https://x/y", "https://a.*.org", "https://**.org", "https://u@x", "x"]
)
def test_an_address_that_is_none_is_refused_at_the_start(url: str) -> None:
    """With what is wrong."""
    assert why_no_services_url(url)


UPGRADE = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n"


@pytest.mark.parametrize("connection", ["keep-alive", "close", "upgrade-insecure"])
async def test_a_protocol_that_the_connection_does_not_name_is_no_other_one(connection: str) -> None:
    """
    A proxy in front that has heard of no other protocol would send requests of others over the connection, which would be the job's.
    """
    async with watched(UPGRADE + b"\r\n", patience=3.0) as (made, seen):
        text = f"GET /jobs/12.0/web/ HTTP/1.1\r\n{HEAD}Upgrade: websocket\r\nConnection: {connection}\r\n\r\n"
        if connection != "close":
            text += f"GET /jobs/12.0/web/x HTTP/1.1\r\n{HEAD}Connection: close\r\n\r\n"
        said = await ask(made.port, text)
        assert b"502" == said.split()[1], said
        assert b"Upgrade" not in seen.data


async def test_a_head_of_another_protocol_says_what_the_job_has_said() -> None:
    """Byte for byte, whatever letters these are meant to be."""
    for said in ("漢".encode(), b"\xff"):
        async with watched(UPGRADE + b"X-A: " + said + b"\r\n\r\n", patience=3.0) as (made, _):
            reader, writer = await asyncio.open_connection("127.0.0.1", made.port)
            writer.write(
                f"GET /jobs/12.0/web/ HTTP/1.1\r\n{HEAD}Upgrade: websocket\r\nConnection: keep-alive, upgrade\r\n\r\n".encode()
            )
            async with asyncio.timeout(PATIENCE_S):
                head = await reader.readuntil(b"\r\n\r\n")
            assert b"101" == head.split()[1]
            assert b"X-A: " + said + b"\r\n" in head
            await gone(writer)
            await until(lambda: not len(made.uses))


async def test_a_job_that_comes_again_and_again_waits() -> None:
    """
    Each connection that ends and begins is recorded: no machine fills the record of a job, nor the memory of the gateway.
    """
    async with gateway() as made:
        said: list[bytes] = []
        for _ in range(30):
            head, _, writer = await upgraded(made.port, "/v2/tunnels", "kettle-tunnel", "12.0/1")
            said.append(head.split()[1])
            await gone(writer)
        assert {b"101", b"429"} == set(said)
        head, _, writer = await upgraded(made.port, "/v2/tunnels", "kettle-tunnel", "13.0/1")
        await gone(writer)
        assert b"101" == head.split()[1], "others are not kept out"


@pytest.mark.parametrize("state", ["\u00e9", "\udcff", ""])
def test_a_state_that_is_none_opens_nothing(state: str) -> None:
    """It comes from an address, in which anything may stand."""
    sessions = ServiceSessions(cast("Any", None), cast("Any", None))
    code = sessions.make_code(cast("Any", None), ("s", JobId(12, 0)), state)
    with pytest.raises(RequestRefused, match="was made for another browser"):
        sessions.redeem(code, "secret", JobId(12, 0), "s")


async def test_strangers_have_no_queues_asked() -> None:
    """Browsers that show nothing of ours are led to sign in, and who guesses codes waits after some."""
    jobs, asked = MadeUpJobs(), list[JobId]()
    jobs.put()

    async def job(number: JobId, schedd: str) -> QueuedJob:
        asked.append(number)
        return await jobs.job(number, schedd or "s")

    limits = RequestLimits(rate=0.01, burst=3, all_rate=1, all_burst=1, proxies=frozenset())
    sessions = ServiceSessions(cast("Any", None), cast("Any", None))
    access: Any = SimpleNamespace(job=job)
    pages = ServicePages(
        access, cast("Any", None), sessions, ServiceOrigins("http://jobs.example"), limits, "http://g"
    )
    async with web_server(pages.application()) as port, aiohttp.ClientSession() as session:
        statuses: list[int] = []
        for path in ("jobs/12.0/web/", "services-enter?code=x&to=/jobs/12.0/web/") * 4:
            headers = {"Host": "jobs.example", "Cookie": "kettle-services=made-up"}
            async with session.get(
                f"http://127.0.0.1:{port}/{path}", headers=headers, allow_redirects=False
            ) as response:
                statuses.append(response.status)
    assert [303, 403] * 3 + [303, 429] == statuses
    assert not asked
