"""
A pool of root for the accounts of a machine: what a job's owner may do, its files are used with, and nothing more.
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from kettle.client import select
from kettle.testing.throwaway_pool import ThrowawayPool

from .accounts import WITHIN_S, Person, admitted, client_of, people

PROGRAM = "#!/bin/sh\ncat in\necho made > made\n"
DESCRIPTION = """\
executable = program
transfer_input_files = in
output = out
error = err
log = log
queue
"""


@pytest.fixture(scope="module")
def persons() -> Iterator[list[Person]]:
    with people(2) as made:
        yield made


def prepared(person: Person) -> None:
    """A program and its input, which only their owner can read."""
    person.write("program", PROGRAM, 0o700)
    person.write("in", f"of {person.name}\n")


async def ran(pool: Path, person: Person, description: str = DESCRIPTION) -> None:
    """Submit as an account, and wait for the end."""
    async with client_of(person, pool) as client:
        cluster = (await client.submit(description, cwd=person.work)).cluster
        async with asyncio.timeout(WITHIN_S):
            await client.wait(select(cluster))


async def test_files_are_their_owners(pool: ThrowawayPool, persons: list[Person]) -> None:
    """Two accounts run jobs with files that nobody else can read; what comes back belongs to them."""
    for person in persons:
        prepared(person)
    async with admitted(pool, persons) as directory:
        await asyncio.gather(*(ran(directory, person) for person in persons))
    for person in persons:
        assert f"of {person.name}\n" == (person.work / "out").read_text()
        made = {
            path.name: path.stat() for path in person.work.iterdir() if path.name not in {"in", "program"}
        }
        assert {"out", "err", "log", "made"} <= made.keys()
        assert {(person.uid, person.gid)} == {(about.st_uid, about.st_gid) for about in made.values()}
