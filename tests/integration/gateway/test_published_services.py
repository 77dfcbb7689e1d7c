"""Services of jobs through the gateway: who reaches what, over real connections."""

import asyncio
import gzip
import ssl
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from kettle.client.errors import PoolUnreachableError
from kettle.client.published import GatewayAccess, StreamNotOpenedError, forward, open_stream
from kettle.pki.authority_files import AuthorityFiles
from kettle.pki.contexts import Listener
from kettle.testing.patience import PATIENCE_S
from kettle_wire.codes import JobStatus
from kettle_wire.jobs import JobId

from .published_parts import ask, gateway, gone, job_side, raw_server, until, upgraded, web_server


def told() -> web.Application:
    """Answers with what it was asked."""

    async def tell(request: web.Request) -> web.Response:
        body = await request.read()
        return web.json_response(
            {
                "method": request.method,
                "target": request.raw_path,
                "headers": dict(request.headers),
                "body": len(body),
            },
            headers={
                "X-Answer": "yes",
                "Set-Cookie": "a=b; Path=/; Domain=example.org",
                "Location": "/elsewhere",
            },
        )

    async def socket(request: web.Request) -> web.WebSocketResponse:
        made = web.WebSocketResponse()
        await made.prepare(request)
        async for message in made:
            await made.send_str(f"echo {message.data}")
        return made

    application = web.Application(client_max_size=1 << 30)
    application.router.add_get("/socket", socket)
    application.router.add_route("*", "/{path:.*}", tell)
    return application


async def rest(reader: asyncio.StreamReader) -> bytes:
    """What comes until the connection ends, in whatever way."""
    try:
        return await reader.read()
    except ConnectionError:
        return b""


async def test_a_request_goes_to_the_job_and_its_answer_comes_back() -> None:
    """
    The job gets its own path and who asks, and no credential; the person gets the answer with its places under the address of the
    service.
    """
    async with gateway() as made, web_server(told()) as port, job_side(made.port, f"web:{port}/http"):
        made.jobs.put()
        headers = {
            "Authorization": "Bearer alice",
            "Cookie": "kettle-session=secret; own=1",
            "X-Forwarded-User": "root",
            "X_Forwarded_User": "root",
        }
        async with (
            aiohttp.ClientSession(headers=headers, auto_decompress=False) as session,
            session.post(
                f"http://127.0.0.1:{made.port}/jobs/12.0/web/a/b?c=%20d", data=b"x" * 300_000
            ) as response,
        ):
            assert 200 == response.status
            said = await response.json()
            assert "yes" == response.headers["X-Answer"]
            assert "/jobs/12.0/web/elsewhere" == response.headers["Location"]
            assert "a=b; Path=/jobs/12.0/web/" == response.headers["Set-Cookie"]
    assert ("POST", "/a/b?c=%20d", 300_000) == (said["method"], said["target"], said["body"])
    job = {name.lower(): value for name, value in said["headers"].items()}
    assert "alice" == job["x-forwarded-user"]
    assert "/jobs/12.0/web" == job["x-forwarded-prefix"]
    assert "own=1" == job["cookie"]
    assert "authorization" not in job
    assert "x_forwarded_user" not in job


async def test_an_answer_that_begins_before_the_request_is_whole_goes_on() -> None:
    """A job that answers each piece as it comes gets the next ones, and the person all of its answers."""

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while size := int(await reader.readline(), 16):
            piece = (await reader.readexactly(size + 2))[:size]
            writer.write(b"%x\r\n%b\r\n" % (size, piece))
        writer.write(b"0\r\n\r\n")
        await writer.drain()

    async with gateway() as made, raw_server(echo) as port, job_side(made.port, f"web:{port}/http"):
        made.jobs.put()
        reader, writer = await asyncio.open_connection("127.0.0.1", made.port)
        writer.write(
            b"POST /jobs/12.0/web/ HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer alice\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        async with asyncio.timeout(PATIENCE_S):
            for number in range(3):
                writer.write(b"3\r\nno%d\r\n" % number)
                assert await reader.readuntil(b"no%d\r\n" % number)
            writer.write(b"0\r\n\r\n")
            assert await reader.readuntil(b"0\r\n\r\n")
        await gone(writer)


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
@pytest.mark.parametrize("chunked", [True, False])
async def test_a_packed_body_reaches_the_job_as_it_was_sent(encoding: str, *, chunked: bool) -> None:
    """Its bytes, its length and what they are said to be, also of an encoding that nobody here can read."""
    came: asyncio.Queue[tuple[bytes, bytes]] = asyncio.Queue()

    async def keep(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        if b"transfer-encoding: chunked" in head:
            body = b""
            while size := int(await reader.readline(), 16):
                body += (await reader.readexactly(size + 2))[:size]
        else:
            body = await reader.readexactly(int(head.partition(b"content-length: ")[2].split()[0]))
        came.put_nowait((head, body))
        writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        await writer.drain()

    packed = gzip.compress(b"0123456789" * 20) if encoding == "gzip" else bytes(range(256))

    async def pieces() -> AsyncIterator[bytes]:
        yield packed[:20]
        yield packed[20:]

    headers = {"Authorization": "Bearer alice", "Content-Encoding": encoding}
    async with gateway() as made, raw_server(keep) as port, job_side(made.port, f"web:{port}/http"):
        made.jobs.put()
        url = f"http://127.0.0.1:{made.port}/jobs/12.0/web/"
        data = pieces() if chunked else packed
        async with (
            aiohttp.ClientSession(headers=headers) as session,
            session.post(url, data=data) as response,
        ):
            assert 204 == response.status
        head, body = came.get_nowait()
    assert packed == body
    assert f"content-encoding: {encoding}".encode() in head


async def test_a_websocket_goes_both_ways() -> None:
    """Frames pass in both directions, and the end of one side is the end of the other."""
    async with gateway() as made, web_server(told()) as port, job_side(made.port, f"web:{port}/http"):
        made.jobs.put()
        async with (
            aiohttp.ClientSession(headers={"Authorization": "Bearer alice"}) as session,
            session.ws_connect(f"http://127.0.0.1:{made.port}/jobs/12.0/web/socket") as socket,
        ):
            await socket.send_str("one")
            assert "echo one" == (await socket.receive()).data
            assert 1 == len(made.uses)
        await until(lambda: not len(made.uses))


@pytest.mark.parametrize(
    ("token", "shared", "status"),
    [
        ("alice", "", 200),
        ("bob", "", 403),
        ("bob", "bob", 200),
        ("carol", "bob", 403),
        ("carol", "group:atlas", 200),
        ("bob", "group:bob", 403),
        ("root", "", 200),
        ("nobody", "nobody", 401),
    ],
)
async def test_who_is_let_in(token: str, shared: str, status: int) -> None:
    """The owner, those with whom it is shared, and administrators; the same for bytes."""
    async with gateway() as made, web_server(told()) as port, job_side(made.port, f"web:{port}/http"):
        made.jobs.put(shared_with=shared)
        headers = {"Authorization": f"Bearer {token}"}
        async with (
            aiohttp.ClientSession(headers=headers) as session,
            session.get(f"http://127.0.0.1:{made.port}/jobs/12.0/web/") as response,
        ):
            assert status == response.status
        head, _, writer = await upgraded(
            made.port, "/v2/jobs/12.0/services/web/connect", "kettle-stream", token
        )
        await gone(writer)
        assert {200: 101}.get(status, status) == int(head.split()[1])


async def test_reading_is_not_enough() -> None:
    """Who may only look may not use what acts in the owner's name."""
    async with gateway() as made, web_server(told()) as port, job_side(made.port, f"web:{port}/http"):
        made.jobs.put()
        made.persons.readers.add("alice")
        answer = await ask(
            made.port,
            "GET /jobs/12.0/web/ HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer alice\r\nConnection: close\r\n\r\n",
        )
        assert b"403" == answer.split()[1]


@pytest.mark.parametrize(
    ("job", "more", "status", "said"),
    [
        (JobId(12, 0), {"status": JobStatus.IDLE}, 503, b"waits for a machine"),
        (JobId(12, 0), {"status": JobStatus.HELD, "hold_reason": "too much memory"}, 503, b"too much memory"),
        (JobId(12, 0), {"status": JobStatus.RUNNING}, 503, b"has not connected"),
        (JobId(12, 0), {"described": "other:1/http"}, 404, b"it publishes: other"),
        (JobId(13, 0), {}, 404, b"there is no job"),
        (JobId(14, 0), {}, 410, b"has ended"),
    ],
)
async def test_a_job_that_cannot_be_asked_says_why(
    job: JobId, more: dict[str, Any], status: int, said: bytes
) -> None:
    """One sentence, at once."""
    async with gateway() as made:
        made.jobs.put(**more)
        made.jobs.ended.add(JobId(14, 0))
        answer = await ask(
            made.port,
            f"GET /jobs/{job}/web/ HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer alice\r\nConnection: close\r\n\r\n",
        )
        assert status == int(answer.split()[1])
        assert said in answer


async def test_bytes_pass_both_ways_and_each_direction_ends_for_itself() -> None:
    """The end of what a person sends reaches the job, whose answer still comes."""

    async def count(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        data = await reader.read()
        writer.write(b"got %d" % len(data))
        writer.write_eof()

    async with gateway() as made, raw_server(count) as port, job_side(made.port, f"raw:{port}/tcp"):
        made.jobs.put()
        head, reader, writer = await upgraded(
            made.port, "/v2/jobs/12.0/services/raw/connect", "kettle-stream", "alice"
        )
        assert head.startswith(b"HTTP/1.1 101")
        writer.write(b"x" * 3_000_000)
        writer.write_eof()
        assert b"got 3000000" == await reader.read()
        await gone(writer)
        await until(lambda: not len(made.uses))


async def test_what_is_taken_back_ends_what_goes_on() -> None:
    """
    A connection of somebody with whom a job is not shared any more, or who may not come any more, is cut.
    """

    async def wait(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with gateway() as made, raw_server(wait) as port, job_side(made.port, f"raw:{port}/tcp"):
        made.jobs.put(shared_with="bob, carol")
        path = "/v2/jobs/12.0/services/raw/connect"
        _, bobs, one = await upgraded(made.port, path, "kettle-stream", "bob")
        _, carols, another = await upgraded(made.port, path, "kettle-stream", "carol")
        made.jobs.put(shared_with="carol")
        assert not await rest(bobs)
        await until(lambda: {"carol"} == {each.person for each in made.uses})
        del made.persons.known["carol"]
        assert not await rest(carols)
        await gone(one)
        await gone(another)


async def test_a_later_run_replaces_an_earlier_one() -> None:
    """And an earlier run that comes again is refused."""
    async with gateway() as made, web_server(told()) as port:
        made.jobs.put()
        async with job_side(made.port, f"web:{port}/http", ticket="12.0/1") as first:
            async with job_side(made.port, f"web:{port}/http", ticket="12.0/2"):
                assert "replaced" in await first.ended()
                head, _, writer = await upgraded(made.port, "/v2/tunnels", "kettle-tunnel", "12.0/1")
                await gone(writer)
                assert b"409" == head.split()[1]
            await until(lambda: not len(made.tunnels))


async def test_the_client_connects_and_forwards() -> None:
    """
    `open_stream` and a forwarded port reach the service; a refusal is an error with the gateway's sentence.
    """

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
        writer.write_eof()

    async with gateway() as made, raw_server(echo) as port, job_side(made.port, f"raw:{port}/tcp"):
        made.jobs.put()
        access = GatewayAccess(f"http://127.0.0.1:{made.port}", token="alice")
        reader, writer = await open_stream("12.0", "raw", access=access)
        writer.write(b"one")
        assert b"one" == await reader.readexactly(3)
        await gone(writer)
        async with forward("12.0@s", "raw", access=access) as local:
            reader, writer = await asyncio.open_connection("127.0.0.1", local)
            writer.write(b"two")
            writer.write_eof()
            assert b"two" == await reader.read()
            await gone(writer)
        with pytest.raises(StreamNotOpenedError, match="has not shared") as refused:
            await open_stream("12.0", "raw", access=GatewayAccess(access.url, token="bob"))
        assert 403 == refused.value.status
        with pytest.raises(StreamNotOpenedError, match="it publishes: raw"):
            await open_stream("12.0", "other", access=access)


async def test_a_service_that_speaks_first_is_heard() -> None:
    """What it says is there, however soon it comes: with the word that it is connected."""
    banner = b"SSH-2.0-here\r\n"
    async with gateway() as made, job_side(made.port, "raw:22/tcp", greets=banner):
        made.jobs.put()
        access = GatewayAccess(f"http://127.0.0.1:{made.port}", token="alice")
        reader, writer = await open_stream("12.0", "raw", access=access)
        assert banner == await asyncio.wait_for(reader.readline(), PATIENCE_S)
        await gone(writer)


async def encrypted(directory: Path) -> tuple[ssl.SSLContext, str]:
    """What a gateway on this machine shows, and the certificate of who has signed that."""
    authority = AuthorityFiles(directory / "pki")
    now = datetime.now(UTC)
    ca = str(authority.make("Test", now=now).certificate)
    shown = authority.issue(["127.0.0.1"], "server", now=now)
    return Listener(certificate=str(shown.certificate), key=str(shown.key)).context(), ca


async def test_over_https_each_direction_ends_for_itself(tmp_path: Path) -> None:
    """
    A service that reads to the end of what it is sent answers afterwards, through a forwarded port as well; one that says more than is
    read at once loses nothing, and one that a client leaves is left.
    """
    sizes: list[int] = []

    async def count(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"ready\n")
        sizes.append(len(await reader.read()))
        writer.write(b"%d\n" % sizes[-1] + bytes(3_000_000))
        writer.close()

    encryption, ca = await encrypted(tmp_path)
    async with (
        gateway(encryption=encryption) as made,
        raw_server(count) as port,
        job_side(made.port, f"raw:{port}/tcp", ca=ca),
    ):
        made.jobs.put()
        access = GatewayAccess(f"https://127.0.0.1:{made.port}", ca, token="alice")
        reader, writer = await open_stream("12.0", "raw", access=access)
        assert b"ready\n" == await reader.readline()
        writer.write(bytes(2_000_000))
        await writer.drain()
        writer.write_eof()
        assert b"2000000\n" == await asyncio.wait_for(reader.readline(), PATIENCE_S)
        assert 3_000_000 == len(await asyncio.wait_for(reader.read(), PATIENCE_S))
        await gone(writer)
        async with forward("12.0", "raw", access=access) as local:
            reader, writer = await asyncio.open_connection("127.0.0.1", local)
            writer.write(b"two")
            writer.write_eof()
            assert b"ready\n3\n" == (await asyncio.wait_for(reader.read(), PATIENCE_S))[:8]
            await gone(writer)
        await until(lambda: not list(made.uses))
        reader, writer = await open_stream("12.0", "raw", access=access)
        writer.write(b"some")
        await gone(writer)
        await until(lambda: sizes == [2_000_000, 3, 4])
        await until(lambda: not list(made.uses))
        with pytest.raises(StreamNotOpenedError, match="has not shared") as refused:
            await open_stream("12.0", "raw", access=GatewayAccess(access.url, ca, token="bob"))
        assert 403 == refused.value.status


@pytest.mark.parametrize("over", ["http", "https"])
async def test_a_job_that_breaks_off_what_it_has_connected_takes_nobodys_places(
    tmp_path: Path, over: str
) -> None:
    """Who connects is told, however soon it comes, and the connection is over at the gateway as well."""
    encryption, ca = await encrypted(tmp_path) if over == "https" else (None, "")
    async with gateway(encryption=encryption) as made, job_side(made.port, "raw:22/tcp", breaks=True, ca=ca):
        made.jobs.put()
        access = GatewayAccess(f"{over}://127.0.0.1:{made.port}", ca, token="alice")
        for _ in range(3):
            with suppress(PoolUnreachableError, ConnectionError):
                reader, writer = await open_stream("12.0", "raw", access=access)
                assert b"" == await asyncio.wait_for(reader.read(), PATIENCE_S)
                await gone(writer)
        await until(lambda: not list(made.uses))
