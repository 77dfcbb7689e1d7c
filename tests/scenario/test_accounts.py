"""
A pool of root for the accounts of a machine: its files are used with the rights of each job's owner, and with no others.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from kettle.client import Client, CommandRefusedError, prepare, select
from kettle.testing.commands.running import execute
from kettle.testing.throwaway_pool import ThrowawayPool

from .accounts import WITHIN_S, Person, admitted, client_of, people
from .job_log import written
from .persons import somebody
from .test_ordinary_user import interpreter, reachable

COUNT = 50
PROGRAM = "#!/bin/sh\ncat in\necho made > made\n"
DESCRIPTION = """\
executable = program
transfer_input_files = in
output = out
error = err
log = log
request_memory = 10
queue
"""


@pytest.fixture(scope="module")
def configuration() -> dict[str, Any]:
    return {"cpus": 2 * COUNT}  # else each owner waits for a claim of somebody to end


@pytest.fixture(scope="module")
def persons() -> Iterator[list[Person]]:
    with people(COUNT) as made:
        yield made


@pytest_asyncio.fixture
async def directory(pool: ThrowawayPool, persons: list[Person]) -> AsyncIterator[Path]:
    """Where the accounts find the pool."""
    async with admitted(pool, persons) as directory:
        yield directory


def prepared(person: Person) -> None:
    """A program and its input, which only their owner can read."""
    person.write("program", PROGRAM, 0o700)
    person.write("in", f"of {person.name}\n")


async def use(directory: Path, person: Person, other: Person) -> None:
    """
    All that a person does: run a job here and one whose files are sent, fetch its results, remove a third; and try to remove
    another's.
    """
    prepared(person)
    sent = person.work / "sent"
    sent.mkdir()
    (sent / "program").write_text(PROGRAM)
    (sent / "in").write_text(f"sent by {person.name}\n")
    (sent / "sub").write_text(DESCRIPTION)
    async with client_of(person, directory) as client, asyncio.timeout(WITHIN_S):
        here = (await client.submit(DESCRIPTION, cwd=person.work)).cluster
        waits = (await client.submit(f"requirements = false\n{DESCRIPTION}", cwd=person.work)).cluster
        submission = prepare(sent / "sub", cwd=sent)
        spooled = await client.submit(submission, spool=True)
        await client.spools.send(submission.queued(proc, spooled.cluster) for proc in range(spooled.count))
        others = await client.remove(select(owners=[other.name]))
        assert {"denied"} >= {each.outcome for each in others.outcomes}
        assert ["done"] == [each.outcome for each in (await client.remove(select(waits))).outcomes]
        await client.wait(select(here, waits, spooled.cluster))
        await client.spools.fetch(select(spooled.cluster))
    assert f"sent by {person.name}\n" == (sent / "out").read_text()


async def test_fifty_owners_use_one_access_point(
    pool: ThrowawayPool, directory: Path, persons: list[Person]
) -> None:
    """
    All at once, each with its own rights; then in the local universe; then one attacks another; then commands run as
    processes of an account.
    """
    await everybody_works_at_once(directory, persons)
    await local_jobs_run_as_their_owner(directory, persons[2])
    await attacks_fail(pool, directory, ada=persons[0], mallory=persons[1])
    await commands_find_the_pool(directory, persons[2], persons[3])


async def everybody_works_at_once(directory: Path, persons: list[Person]) -> None:
    """
    Each has files that nobody else can read, and gets results that belong to no other; nothing of theirs is anybody else's.
    """
    async with asyncio.TaskGroup() as all_at_once:
        for person, other in zip(persons, persons[1:] + persons[:1], strict=True):
            all_at_once.create_task(use(directory, person, other))
    for person in persons:
        await written(person.work / "log", "\n005 (")
        assert f"of {person.name}\n" == (person.work / "out").read_text()
        made = {name: (person.work / name).stat() for name in ("out", "err", "log", "made")}
        assert {(person.uid, person.gid)} == {(about.st_uid, about.st_gid) for about in made.values()}


async def local_jobs_run_as_their_owner(directory: Path, person: Person) -> None:
    """
    With its ids, all its groups and its home, where its files are, and in a sandbox if it wants one; with no rights of root.
    """
    program = 'id -u; id -g; id -G; echo "$HOME"; pwd; grep -E "^(CapEff|Groups)" /proc/self/status | tr -d "\\t"; cat in'
    person.write("who", f"#!/bin/sh\n{program}\n", 0o700)
    described = "executable = who\ninput = in\nlog = log\n"
    local = f"{described}universe = local\noutput = local\nqueue\n"
    scheduler = f"{described}universe = scheduler\noutput = scheduler\nqueue\n"
    sandboxed = f"{described}universe = local\nshould_transfer_files = yes\ntransfer_input_files = in\noutput = sandboxed\nqueue\n"
    async with client_of(person, directory) as client, asyncio.timeout(WITHIN_S):
        clusters = [
            (await client.submit(text, cwd=person.work)).cluster for text in (local, scheduler, sandboxed)
        ]
        await client.wait(select(*clusters))
    groups = " ".join(map(str, (person.gid, *person.more_groups)))
    sorted_groups = " ".join(map(str, sorted((person.gid, *person.more_groups))))
    for name in ("local", "scheduler", "sandboxed"):
        uid, gid, ids, home, where, *rest = (person.work / name).read_text().splitlines()
        assert (person.uid, person.gid, person.work) == (int(uid), int(gid), Path(home)), name
        assert groups == ids
        assert (name != "sandboxed") == (Path(where) == person.work)
        assert [f"Groups:{sorted_groups} ", "CapEff:0000000000000000", f"of {person.name}"] == rest


def state(person: Person) -> dict[str, tuple[int, int, bytes]]:
    """What there is of somebody: owner, mode and bytes of everything."""
    return {
        path.name: (path.lstat().st_uid, path.lstat().st_mode, path.read_bytes() if path.is_file() else b"")
        for path in (person.work, *person.work.iterdir())
    }


async def attacks_fail(pool: ThrowawayPool, directory: Path, *, ada: Person, mallory: Person) -> None:
    """
    By paths, by links, and through results and logs: those jobs are held, with the path and the system's words.  What is done
    for an owner is audited, with the path and without what is in the files.
    """
    secret = ada.write("secret", "hush-hush")
    prepared(mallory)
    for name, target in (("link", secret), ("place", ada.work), ("over", ada.work / "in")):
        (mallory.work / name).unlink(missing_ok=True)
        (mallory.work / name).symlink_to(target)
    before = state(ada)
    attacks = {
        f"transfer_input_files = {secret}": 13,
        "transfer_input_files = link": 13,
        f"transfer_input_files = ../{ada.name}/secret": 13,
        "transfer_input_files = place/secret": 13,
        "input = link": 13,
        "executable = link": 13,
        f"output = {ada.work}/new": 12,
        f"initialdir = {mallory.work}/place": 12,
        f"transfer_output_remaps = made = {ada.work}/made": 12,
        "transfer_output_remaps = made = place/made": 12,
        f"log = {ada.work}/log": 0,
        "log = place/log": 0,
        "output = over": 12,
    }
    program = f"executable = {mallory.work}/program\ntransfer_input_files = {mallory.work}/in\n"
    async with client_of(mallory, directory) as client, asyncio.timeout(WITHIN_S):
        clusters = {
            (await client.submit(f"{program}{attack}\nqueue\n", cwd=mallory.work)).cluster: (attack, code)
            for attack, code in attacks.items()
        }
        await settled(client, list(clusters))
        held = {int(str(ad["ClusterId"])): ad for ad in await client.jobs(select(*clusters))}
        await client.remove(select(*held))
    for cluster, (attack, code) in clusters.items():
        ad = held.get(cluster, {})
        assert code == ad.get("HoldReasonCode", 0), (attack, ad.get("HoldReason"))
        assert not code or "Permission denied" in str(ad["HoldReason"])
    assert before == state(ada)
    audit = [line for line in pool.log("shadow").splitlines() if f"for {mallory.name}: " in line]
    assert any(
        f"read for {mallory.name}: '{mallory.work}/in'" in line and str(mallory.uid) in line for line in audit
    )
    assert "hush-hush" not in pool.log("shadow")


async def settled(client: Client, clusters: list[int]) -> None:
    """Until all jobs have ended or are held."""
    while True:
        found = await client.jobs(select(*clusters), projection=["JobStatus"])
        if all(ad["JobStatus"] == 5 for ad in found):
            return
        await asyncio.sleep(0.05)


@pytest.mark.parametrize("name", ["nobody", "kettle-unknown"])
async def test_who_has_no_account_of_a_person_is_refused_at_once(
    pool: ThrowawayPool, tmp_path: Path, name: str
) -> None:
    """With the reason, and what to do instead; that works, and leaves no rights."""
    (tmp_path / "program").write_text("#!/bin/sh\necho sent\n")
    (tmp_path / "program").chmod(0o755)
    (tmp_path / "sub").write_text("executable = program\noutput = out\nqueue\n")
    submission = prepare(tmp_path / "sub", cwd=tmp_path)
    local = prepare("universe = local\nexecutable = program\noutput = out\nqueue\n", cwd=tmp_path)
    async with somebody(pool, name, tmp_path) as client, asyncio.timeout(WITHIN_S):
        with pytest.raises(CommandRefusedError, match=rf"belongs to {name}.* account.*condor_submit -spool"):
            await client.submit("executable = /bin/true\nqueue\n", cwd=tmp_path)
        with pytest.raises(CommandRefusedError, match=rf"belongs to {name}.* account.*vanilla"):
            await client.submit(local, spool=True)
        spooled = await client.submit(submission, spool=True)
        await client.spools.send(submission.queued(proc, spooled.cluster) for proc in range(spooled.count))
        await client.wait(select(spooled.cluster))
        await client.spools.fetch(select(spooled.cluster))
    assert "sent\n" == (tmp_path / "out").read_text()


async def commands_find_the_pool(directory: Path, person: Person, other: Person) -> None:
    """As a process of the account: it submits and waits; the key of another it cannot read."""
    python = interpreter()
    modules = [path for path in sys.path if path.endswith(("-packages", "libs", "schemas", "services"))]
    if python is None or not all(reachable(Path(path)) for path in modules):
        return  # an ordinary user cannot read this checkout or its Python
    prepared(person)
    person.write("sub", DESCRIPTION)
    drop = ["setpriv", f"--reuid={person.uid}", f"--regid={person.gid}", "--init-groups", "--"]
    command = [*drop, str(python), "-P", "-m", "kettle_services.cli"]
    environ = {"HOME": str(person.work), "PATH": "/usr/bin:/bin", "PYTHONPATH": os.pathsep.join(modules)}
    ours = {**environ, "KETTLE_HOME": str(directory / person.name)}
    submitted = await execute([*command, "submit", "sub"], person.work, ours)
    assert (0, "") == (submitted.status, submitted.err)
    waited = await execute([*command, "wait", submitted.out.split()[-1].rstrip(".")], person.work, ours)
    assert 0 == waited.status, waited
    assert person.uid == (person.work / "out").stat().st_uid
    refused = await execute(
        [*command, "q"], person.work, {**environ, "KETTLE_HOME": str(directory / other.name)}
    )
    assert (1, True) == (refused.status, "Permission denied" in refused.err), refused
