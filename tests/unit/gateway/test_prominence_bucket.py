"""What people and jobs send, in a bucket of S3, and what is left when its service fails in between."""

import hashlib
import os
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from kettle.prominence.addresses import Place
from kettle.runtime import SettingsError
from kettle.testing.servers.files import s3
from kettle.transfer.s3_signatures import Key, signed
from kettle.transfer.s3_signatures import Place as Signed
from kettle_services.gateway.prominence.application import PREFIX, as_errors
from kettle_services.gateway.prominence.bucket import Bucket, key_of
from kettle_services.gateway.prominence.data import Data
from kettle_services.gateway.prominence.object_directory import Limits, ObjectDirectory
from kettle_services.gateway.prominence.signatures import Signer
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_services.gateway.settings import GatewaySettings

KEY = Key("the-id", "the-secret")
LIMITS = Limits(largest=1 << 20, all_of_one=1 << 20, kept=100.0)
PLACE = Place("uploads", "ada", "results of/1.txt")


class Service:
    """
    A service of buckets that keeps objects in memory, and takes no address that is not signed, or is over.
    """

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.failing = False
        self.now = time.time

    async def answer(self, request: web.Request) -> web.Response:
        """Do what an address permits."""
        said = dict(parse_qsl(urlsplit(str(request.rel_url)).query))
        at = time.mktime(time.strptime(said["X-Amz-Date"], "%Y%m%dT%H%M%SZ")) - time.timezone
        lifetime = int(said["X-Amz-Expires"])
        there = Signed(f"http://{request.host}{request.rel_url.raw_path}", "us-east-1")
        wanted = signed(there, request.method, KEY, at=at, lifetime=lifetime)
        if said["X-Amz-Signature"] not in wanted or self.now() > at + lifetime:
            return web.Response(status=403)
        if self.failing:
            return web.Response(status=500, text="SlowDown")
        name = request.match_info["name"]
        if request.method == "PUT":
            self.objects[name] = await request.read()
        elif request.method == "DELETE":
            return web.Response(status=204 if self.objects.pop(name, None) is not None else 404)
        elif name not in self.objects:
            return web.Response(status=404)
        return web.Response(body=self.objects[name] if request.method == "GET" else b"")


@asynccontextmanager
async def bucket_at(service: Service) -> AsyncGenerator[Bucket]:
    """A bucket of this service."""
    application = web.Application()
    application.router.add_route("*", "/pool/kettle/{name:.+}", service.answer)
    async with TestServer(application) as server, aiohttp.ClientSession() as session:
        yield Bucket("s3://pool/kettle", KEY, session, region="", endpoint=str(server.make_url("/")))


async def coming(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


async def kept(objects: ObjectDirectory, data: bytes, place: Place = PLACE) -> None:
    await objects.put(place, coming(data), size=len(data), sha256=hashlib.sha256(data).hexdigest())


async def fetched_at(objects: ObjectDirectory) -> str:
    """The address in the bucket."""
    address = await objects.where(PLACE)
    assert isinstance(address, str)
    return address


async def test_objects_are_in_the_bucket_and_known_here(tmp_path: Path) -> None:
    """
    What was sent is fetched from the bucket, for some minutes; sent again it takes the place of the one before, which leaves; removed
    it is nowhere.  Documents stay here.
    """
    service = Service()
    async with bucket_at(service) as bucket, aiohttp.ClientSession() as session:
        objects = ObjectDirectory(tmp_path, LIMITS, bucket)
        address = ""
        for data in (b"one", b"another"):
            await kept(objects, data)
            assert [data] == list(service.objects.values())
            address = await fetched_at(objects)
            async with session.get(address) as answer:
                assert data == await answer.read()
        service.now = lambda: time.time() + 601
        async with session.get(address) as answer:
            assert 403 == answer.status
        service.now = time.time
        found = await objects.find(PLACE)
        assert found is not None
        assert [(PLACE.name, 7)] == [(each.name, each.size) for each in await objects.list("uploads", "ada")]
        assert (PLACE.name, 7) == (found.name, found.size)
        document = Place("documents", "ada", "id")
        await kept(objects, b"secret", document)
        assert isinstance(await objects.where(document), Path)
        assert await objects.remove(PLACE)
        assert not await objects.remove(PLACE)
        assert ({}, None) == (service.objects, await objects.where(PLACE))
        assert [] == list((tmp_path / "leaving").iterdir())


async def test_what_could_not_be_done_is_done_later(tmp_path: Path) -> None:
    """
    A bucket that fails keeps nothing new and the old one stays; what it did not let go is removed when it works again, and nothing
    that is still named.
    """
    service = Service()
    async with bucket_at(service) as bucket:
        objects = ObjectDirectory(tmp_path, LIMITS, bucket)
        await kept(objects, b"one")
        service.failing = True
        with pytest.raises(RequestRefused, match="try again later"):
            await kept(objects, b"another")
        assert isinstance(await objects.where(PLACE), str)
        assert await objects.remove(PLACE)
        assert [b"one"] == list(service.objects.values())
        service.failing = False
        await kept(objects, b"third")
        await ObjectDirectory(tmp_path, LIMITS, bucket).clean()  # as after a restart
        assert [b"third"] == list(service.objects.values())
        assert [] == list((tmp_path / "leaving").iterdir())


async def test_what_jobs_sent_long_ago_leaves_the_bucket(tmp_path: Path) -> None:
    """Results are removed after their time, there as here, and uploads are not."""
    service, old = Service(), Place("scratch", "ada", "id/made")
    async with bucket_at(service) as bucket:
        objects = ObjectDirectory(tmp_path, LIMITS, bucket)
        await kept(objects, b"upload")
        await kept(objects, b"result", old)
        await objects.clean()
        assert 2 == len(service.objects)
        await ObjectDirectory(tmp_path, Limits(largest=9, all_of_one=9, kept=-1.0), bucket).clean()
        assert [b"upload"] == list(service.objects.values())
        assert await objects.find(old) is None


async def test_a_directory_becomes_a_bucket_and_one_again(tmp_path: Path) -> None:
    """
    What is here is found when a bucket is used, and sent again goes there; without the bucket what is in it is refused with a
    sentence, and can be sent again.
    """
    service = Service()
    async with bucket_at(service) as bucket:
        here, there = ObjectDirectory(tmp_path, LIMITS), ObjectDirectory(tmp_path, LIMITS, bucket)
        await kept(here, b"here")
        assert isinstance(await there.where(PLACE), Path)
        await kept(there, b"there")
        assert isinstance(await there.where(PLACE), str)
        with pytest.raises(RequestRefused, match="does not use any more"):
            await here.where(PLACE)
        await kept(here, b"again")
        path = await here.where(PLACE)
        assert isinstance(path, Path)
        assert b"again" == path.read_bytes()
        assert [5] == [each.size for each in await here.list("uploads", "ada")]


async def test_who_has_an_address_is_sent_to_the_bucket(tmp_path: Path) -> None:
    """
    An address of the gateway is answered with one of the bucket, and parts of the object are fetched there.
    """
    signer, service = Signer(bytes(32), "https://pool.example.org"), Service()
    async with bucket_at(service) as bucket:
        objects = ObjectDirectory(tmp_path, LIMITS, bucket)
        application = web.Application()
        for route in Data(objects, signer).open_routes():
            application.router.add_route(route.method, PREFIX + route.path, as_errors(route.handler))
        async with TestClient(TestServer(application)) as client:
            ways = {
                method: urlsplit(signer.url(method, PLACE, expires=time.time() + 60))
                for method in ("PUT", "GET")
            }
            put, get = (f"{ways[method].path}?{ways[method].query}" for method in ("PUT", "GET"))
            async with client.put(put, data=b"0123456789") as answer:
                assert 201 == answer.status
            async with client.get(get, allow_redirects=False) as answer:
                assert (307, "no-store") == (answer.status, answer.headers["Cache-Control"])
                assert "the-secret" not in answer.headers["Location"]
            async with client.get(get) as answer:
                assert b"0123456789" == await answer.read()


def settings(path: Path) -> GatewaySettings:
    said: dict[str, Any] = {"prominence_bucket": "s3://pool", "prominence_bucket_key": str(path)}
    return GatewaySettings(rest=True, prominence=True, **said)


def test_the_key_of_a_bucket_is_nobody_elses(tmp_path: Path) -> None:
    """A file that others can read, or that has not two words, is refused, and no key is ever shown."""
    path = tmp_path / "key"
    with pytest.raises(SettingsError, match="cannot be read"):
        key_of(settings(path))
    path.write_text("the-id\nthe-secret\n")
    path.chmod(0o640)
    with pytest.raises(SettingsError, match="chmod 600"):
        key_of(settings(path))
    path.chmod(0o600)
    assert KEY == key_of(settings(path))
    assert "the-secret" not in repr(key_of(settings(path)))
    path.write_text("the-id\n")
    with pytest.raises(SettingsError, match="its secret on the second"):
        key_of(settings(path))


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "keys").mkdir()
    with s3(tmp_path / "keys") as served:
        yield f"http://127.0.0.1:{served.port}"


@pytest.mark.skipif(
    "KETTLE_TEST_LONG" not in os.environ,
    reason="it takes minutes: moto begins slowly (KETTLE_TEST_LONG=1 waits)",
)
async def test_moto_takes_the_same(tmp_path: Path, address: str) -> None:
    """Against moto, with its own reading of signed addresses: sent, replaced, fetched in parts, removed."""
    async with aiohttp.ClientSession() as session:
        bucket = Bucket("s3://bucket/kettle", KEY, session, region="", endpoint=address)
        objects = ObjectDirectory(tmp_path / "objects", LIMITS, bucket)
        for data in (b"one", b"0123456789"):
            await kept(objects, data)
        there = await objects.where(PLACE)
        assert isinstance(there, str)
        async with session.get(there, headers={"Range": "bytes=2-4"}) as answer:
            assert (206, b"234") == (answer.status, await answer.read())
        assert await objects.remove(PLACE)
        async with session.get(there) as answer:
            assert 404 == answer.status
