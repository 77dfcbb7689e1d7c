"""The reference of attributes against the ads of a pool in which something happens."""

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kettle.client import select
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_wire.ads import Ad, Expr

TYPES: dict[str, tuple[type, ...]] = {
    "integer": (int,),
    "number": (int, float),
    "text": (str,),
    "boolean": (bool,),
    "list": (Expr,),
    "expression": (Expr, bool, int, float, str),
}
"""What a value is on the wire."""
WORDS = {
    "n": r"\d+",
    "name": r"\w+",
    "service": r"\w+",
    "repository": r"\w+",
    "resource": "(cpus|memory|disk|gpus)",
    "runtime": "(bubblewrap|runc|crun|podman|dockerengine)",
    "daemon": "(nats|postgres|collector|negotiator|schedd|shadow|startd|dagman|sessions|accounting|gateway)",
}
"""What may stand for a word in angle brackets in this pool."""

Known = Callable[[str, Ad], list[str]]


@pytest.fixture(scope="module")
def strange(pytestconfig: pytest.Config) -> Known:
    """
    What of an ad is not in the reference, or is of another type there, by the parts of the reference that tell of it.
    """
    parts: dict[str, Any] = msgspec.toml.decode(
        (pytestconfig.rootpath / "schemas/kettle_wire/ads/attributes.toml").read_bytes()
    )

    def strange(of: str, ad: Ad) -> list[str]:
        known = [
            (
                re.compile(re.sub(r"<(\w+)>", lambda word: WORDS[word[1]], name), re.IGNORECASE),
                TYPES[about[0]],
            )
            for part in of.split()
            for name, about in parts[part]["attributes"].items()
        ]
        return [
            f"{of}: {name} = {value!r}"
            for name, value in ad.items()
            if not any(
                pattern.fullmatch(name)
                and isinstance(value, kinds)
                and (bool in kinds or type(value) is not bool)
                for pattern, kinds in known
            )
        ]

    return strange


async def jobs(pool: ThrowawayPool, directory: Path) -> list[Ad]:
    """Jobs that run, that wait, that are held, and one that is done."""
    description = "executable = /bin/sleep\noutput = out\nerror = err\nlog = log\n"
    done = await pool.client.submit(f"{description}arguments = 0\nqueue", cwd=directory)
    await pool.client.wait(select(done.cluster))
    held = await pool.client.submit(f"{description}arguments = 1000\nqueue", cwd=directory)
    await pool.client.hold(select(held.cluster), "for the reference")
    await pool.client.submit(f"{description}arguments = 1000\nqueue 4", cwd=directory)
    while True:
        ads = [*await pool.client.jobs(), *await pool.client.history(select(done.cluster))]
        if {1, 2, 4, 5} <= {ad["JobStatus"] for ad in ads}:
            return ads
        await asyncio.sleep(0.1)


async def test_what_is_in_the_ads_is_in_the_reference(
    pool: ThrowawayPool, strange: Known, tmp_path: Path
) -> None:
    """
    Each attribute of each ad of the pool, with its type, while slots are claimed; and those of its jobs.
    """
    async with asyncio.timeout(PATIENCE_S):
        found = [complaint for ad in await jobs(pool, tmp_path) for complaint in strange("Job Queue all", ad)]
        while True:
            ads = await pool.client.ads()
            types = {str(ad["MyType"]) for ad in ads}
            expected = {
                "Machine",
                "StartD",
                "DaemonMaster",
                "Scheduler",
                "Submitter",
                "Negotiator",
                "Collector",
            }
            if expected <= types and any("JobId" in ad for ad in ads):
                break
            await asyncio.sleep(0.1)
    found += [complaint for ad in ads for complaint in strange(f"{ad['MyType']} all", ad)]
    assert [] == sorted(set(found))
