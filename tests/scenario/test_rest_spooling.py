"""Jobs whose files come over HTTP, with a token, from somebody who has no files at the access point."""

import asyncio
import base64
import io
import os
from hashlib import sha256
from typing import Any

import aiohttp
from tests.integration.iam.issuer import TokenIssuer
from yarl import URL

from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle.transfer.spooled_jobs import HELD_FOR

from .test_rest_tokens import POOL, browser, configuration, issuer, pytestmark, sent

__all__ = ["configuration", "issuer", "pytestmark"]

PROGRAM = b"#!/bin/sh\ncat shared large own | sha256sum\n"
JOBS: dict[str, Any] = {
    "ad": {
        "Cmd": "program",
        "Iwd": "/nowhere",
        "Out": "out",
        "TransferInput": "shared,large,own",
        "RequestMemory": 16,
    },
    "columns": ["Args"],
    "rows": [["0"], ["1"]],
}


def digest(data: bytes) -> dict[str, str]:
    return {"Repr-Digest": f"sha-256=:{base64.b64encode(sha256(data).digest()).decode()}:"}


def about(path: str, data: bytes, **more: Any) -> dict[str, Any]:
    return {"path": path, "sha256": sha256(data).hexdigest(), "size": len(data), **more}


async def output(session: aiohttp.ClientSession, job: str) -> str:
    """What a job has written when it has ended."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            _, seen = await sent(session, "GET", f"/v2/jobs/{job}")
            assert seen.get("hold_reason") in {None, HELD_FOR}, seen["hold_reason"]
            if seen.get("state") == "completed":
                break
            await asyncio.sleep(0.1)
    async with session.get(f"/v2/jobs/{job}/stdout") as response:
        assert 200 == response.status, await response.text()
        return await response.text()


async def test_files_are_sent_in_parts_and_known_by_their_content(
    pool: ThrowawayPool, issuer: TokenIssuer, another: str
) -> None:
    """
    Files come in parts, go on where they were interrupted, are refused if they are others than was said, and the jobs run with them
    when all are there, not before, and nobody else can send any.
    """
    large, shared = os.urandom(5 << 20), b"shared\n"
    half = 3 << 20
    async with browser(pool, issuer.token(another, POOL)) as grace:
        status, made = await sent(grace, "POST", "/v2/jobs?spool=1", json=JOBS)
        assert 200 == status, made
        cluster, at_least = made["cluster"], made["position"]
        _, held = await sent(grace, "GET", f"/v2/jobs/{cluster}.0?at_least={at_least}")
        assert ("held", HELD_FOR) == (held["state"], held["hold_reason"])
        files = f"/v2/jobs/{cluster}.0/files"
        for path, data in (("program", PROGRAM), ("shared", shared), ("own", b"0"), ("empty", b"")):
            status, said = await sent(grace, "PUT", f"{files}/{path}", data=data)
            assert (200, about(path, data) | {"have": len(data)}) == (status, said)

        part = {**digest(large), "Content-Range": f"bytes 0-{half - 1}/{len(large)}"}
        _, said = await sent(grace, "PUT", f"{files}/large", data=io.BytesIO(large[:half]), headers=part)
        assert half == said["have"]
        wanted: dict[str, Any] = {
            "files": [
                about("program", PROGRAM, executable=True),
                about("shared", shared),
                about("large", large),
            ],
            "jobs": [
                {"first": proc, "files": [about("own", str(proc).encode()), about("empty", b"")]}
                for proc in (0, 1)
            ],
        }
        inputs = f"/v2/clusters/{cluster}/inputs"
        status, refused = await sent(grace, "POST", inputs, json=wanted)
        assert (409, "files.missing") == (status, refused["code"])
        missing = [each["pointer"] for each in refused["errors"]]
        assert ["/body/files/2", "/body/jobs/1/files/0"] == missing

        asks = {**digest(large), "Content-Range": f"bytes */{len(large)}"}
        _, said = await sent(grace, "PUT", f"{files}/large", headers=asks)
        assert half == said["have"]
        rest = {**digest(large), "Content-Range": f"bytes {half}-{len(large) - 1}/{len(large)}"}
        other = bytes(len(large) - half)
        status, refused = await sent(grace, "PUT", f"{files}/large", data=io.BytesIO(other), headers=rest)
        assert (409, "changed") == (status, refused["code"])
        _, said = await sent(grace, "PUT", f"{files}/large", data=io.BytesIO(large), headers=digest(large))
        assert len(large) == said["have"]

        async with browser(pool, issuer.token("alan", POOL)) as alan:
            status, refused = await sent(alan, "PUT", f"/v2/jobs/{cluster}.1/files/own", data=b"2")
            assert (403, "denied") == (status, refused["code"])
        await sent(grace, "PUT", f"/v2/jobs/{cluster}.1/files/own", data=b"1")
        for _ in range(2):
            status, given = await sent(grace, "POST", inputs, json=wanted)
            assert (200, f"{cluster}@schedd") == (status, given["id"])
        for proc in (0, 1):
            expected = sha256(shared + large + str(proc).encode()).hexdigest()
            assert f"{expected}  -\n" == await output(grace, f"{cluster}.{proc}")
        await sent(grace, "POST", "/v2/jobs:remove", json={"ids": [f"{cluster}.0", f"{cluster}.1"]})


REFUSED: list[tuple[dict[str, str], str, str]] = [
    ({"Repr-Digest": "sha-256=:x:"}, "a", "/header/Repr-Digest"),
    ({"Content-Range": "bytes 0-0/1"}, "a", "/header/Repr-Digest"),
    ({**digest(b"1"), "Content-Range": "bytes 0-4/5"}, "a", "/header/Content-Range"),
    ({**digest(b"1"), "Content-Range": "bytes 1-0/5"}, "a", "/header/Content-Range"),
    ({**digest(b"1"), "Content-Range": "all"}, "a", "/header/Content-Range"),
    ({}, "%2E%2E/a", "/path/path"),
]


async def test_a_file_that_is_not_what_it_says_is_refused(
    pool: ThrowawayPool, issuer: TokenIssuer, another: str
) -> None:
    """What is said of a file has to fit it, and a file has a place inside of the sandbox."""
    async with browser(pool, issuer.token(another, POOL)) as grace:
        _, made = await sent(grace, "POST", "/v2/jobs?spool=1", json=JOBS)
        for headers, path, pointer in REFUSED:
            address = URL(f"/v2/jobs/{made['cluster']}.0/files/{path}", encoded=True)
            async with grace.put(address, data=b"1", headers=headers) as response:
                refused = await response.json(content_type=None)
            assert (400, [pointer]) == (response.status, [each["pointer"] for each in refused["errors"]])
        ids = [f"{made['cluster']}.{proc}" for proc in (0, 1)]
        await sent(grace, "POST", "/v2/jobs:remove", json={"ids": ids})
