"""Time series of jobs, and the tokens that jobs show."""

import json
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from kettle.prominence.addresses import AS_JOB, JobToken
from kettle_services.gateway.prominence.application import as_errors
from kettle_services.gateway.prominence.signatures import Signer
from kettle_services.gateway.prominence.time_series import LARGEST, Point, TimeSeries, Used, means
from kettle_services.gateway.rest.refusals import RequestRefused

FAR = 4e9
SIGNER = Signer(bytes(32), "https://pool.example.org")
PERMIT = SIGNER.permit(AS_JOB, "scratch", "ada", within="secret", expires=FAR)
TOKEN = JobToken.of(PERMIT, "secret/1").text()
HEADERS = {"Authorization": f"Bearer {TOKEN}"}


def series(path: Path, most: Used = Used(jobs=100, size=1 << 20)) -> TimeSeries:  # noqa: B008 - nobody changes it
    return TimeSeries(path, 3600.0, most, SIGNER, lists=None)  # type: ignore[arg-type]  # nobody asks for a job here


@asynccontextmanager
async def serving(kept: TimeSeries) -> AsyncGenerator[TestClient[web.Request, web.Application]]:
    application = web.Application()
    for route in kept.open_routes():
        application.router.add_route(route.method, route.path, as_errors(route.handler))
    async with TestClient(TestServer(application)) as client:
        yield client


def test_a_job_is_known_by_its_token() -> None:
    """Until its end, and not by one that says another owner, another job, or another end."""
    assert ("ada", "secret/1") == SIGNER.job_of(TOKEN, now=1.0)
    with pytest.raises(RequestRefused, match="is over"):
        SIGNER.job_of(TOKEN, now=FAR)
    good = JobToken.read(TOKEN)
    for changed in (
        JobToken("bob", *_rest(good)),
        JobToken(good.owner, "secret/2", *_rest(good)[1:]),
        JobToken(good.owner, "other/1", *_rest(good)[1:]),
        JobToken(good.owner, good.identifier, "", *_rest(good)[2:]),
        JobToken(good.owner, good.identifier, good.within, good.expires + 1, good.signature),
    ):
        with pytest.raises(RequestRefused, match="not that of a job"):
            SIGNER.job_of(changed.text(), now=1.0)
    for none in ("", "x", "e30=", "\u00e9"):
        with pytest.raises(RequestRefused, match="show the token of a job"):
            SIGNER.job_of(none, now=1.0)


def _rest(token: JobToken) -> tuple[str, str, int, str]:
    return token.identifier, token.within, token.expires, token.signature


async def test_points_are_kept_by_job(tmp_path: Path) -> None:
    """
    What a job sends is there in its order, with the time at which it came if it says none; nobody sends for another.
    """
    kept = series(tmp_path)
    async with serving(kept) as client:
        for fields in ({"loss": 2.0}, {"loss": 1.0, "epoch": 3}):
            said = {"measurement": "m", "fields": fields, "tags": {"of": "a b"}}
            async with client.post("/ts", json=said, headers=HEADERS) as response:
                assert 201 == response.status, await response.text()
        async with client.post("/ts", json={"measurement": "m", "fields": {"x": 1}, "time": 5}) as response:
            assert 401 == response.status
    found = await kept.points("ada", "secret/1")
    assert [{"loss": 2.0}, {"loss": 1.0, "epoch": 3.0}] == [each.fields for each in found]
    assert all(each.time for each in found)
    assert {"m": {"loss": 1.5, "epoch": 3.0}} == means(found)
    assert [] == await kept.points("ada", "secret/2")
    assert [] == await kept.points("bob", "secret/1")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b'{"measurement": "m", "fields": {}}',
        b'{"measurement": "m", "fields": {"x": "1"}}',
        b'{"measurement": "m", "fields": {"x": 1e999}}',
        b'{"measurement": "m", "fields": {"x": 1}, "more": 1}',
        json.dumps({"measurement": "m", "fields": {"x" * LARGEST: 1}}).encode(),
    ],
)
async def test_what_is_no_point_is_refused(tmp_path: Path, body: bytes) -> None:
    """With a sentence, and nothing of it is kept."""
    kept = series(tmp_path)
    async with serving(kept) as client, client.post("/ts", data=body, headers=HEADERS) as response:
        assert 400 == response.status
        assert (await response.json())["error"]
    assert [] == await kept.points("ada", "secret/1")


async def test_points_are_forgotten_after_a_time(tmp_path: Path) -> None:
    """Counted from the last point of the job; a line that was cut off is no point, and harms no other."""
    kept = series(tmp_path)
    async with serving(kept) as client:
        said = Point("m", {"x": 1.0}, time=1.0)
        for _ in range(2):
            async with client.post(
                "/ts", json={"measurement": "m", "fields": {"x": 1}, "time": 1}, headers=HEADERS
            ) as answer:
                assert 201 == answer.status
            (written,) = tmp_path.glob("*/*")
            with written.open("ab") as cut:
                cut.write(b'\n{"measurement": "m", "fie')
    assert [said, said] == await kept.points("ada", "secret/1")
    (file,) = tmp_path.glob("*/*")
    os.utime(file, (1000.0, 1000.0))
    kept.forget(before=1000.0)
    assert file.exists()
    kept.forget(before=1001.0)
    assert [] == await kept.points("ada", "secret/1")


@pytest.mark.parametrize(
    ("most", "sentence"), [(Used(2, 1 << 20), "too many jobs"), (Used(9, 120), "more than 120 bytes")]
)
async def test_the_points_of_one_owner_are_bounded(tmp_path: Path, most: Used, sentence: str) -> None:
    """
    Also of one who makes tokens for jobs that do not exist; for others there is room, and a gateway that starts again knows what is there.
    """

    async def sent(kept: TimeSeries, owner: str, job: int) -> tuple[int, str]:
        permit = SIGNER.permit(AS_JOB, "scratch", owner, within="secret", expires=FAR)
        headers = {"Authorization": f"Bearer {JobToken.of(permit, f'secret/{job}').text()}"}
        said = {"measurement": "m", "fields": {"x": 1}, "time": 1}
        async with serving(kept) as client, client.post("/ts", json=said, headers=headers) as response:
            return response.status, await response.text()

    kept = series(tmp_path, most)
    assert [201, 201] == [(await sent(kept, "ada", job))[0] for job in (1, 2)]
    for again in (kept, series(tmp_path, most)):
        status, told = await sent(again, "ada", 3)
        assert (400, True) == (status, sentence in told)
        assert 201 == (await sent(again, "bob", 3))[0]
    assert [] == await kept.points("ada", "secret/3")
