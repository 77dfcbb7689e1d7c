"""Claims over the bus: asked for, renewed, used, given back."""

import asyncio

import msgspec

from kettle.execution.system.linux import boottime
from kettle.testing.patience import PATIENCE_S
from kettle.testing.submit_side import SCHEDD, SubmitSide, job_ad, script
from kettle.testing.worker import WorkerPool
from kettle_wire.ads import Ad
from kettle_wire.commands.startd import (
    ALIVE,
    CONFIRM,
    RELEASE,
    Alive,
    AliveReply,
    ClaimKey,
    Confirm,
    Release,
)
from kettle_wire.subjects import machine_key
from kettle_wire.worker_reports import Started


async def slot(submitter: SubmitSide, name: str) -> Ad | None:
    """The ad of a slot as it stands in the bucket now."""
    found: Ad | None = None
    async for change in submitter.schedd.watch(
        submitter.subjects.ads, machine_key(name.partition("@")[2], name)
    ):
        if change is None:
            return found
        found = None if change.value is None else msgspec.msgpack.decode(change.value, type=Ad)
    return None


async def until_slot(submitter: SubmitSide, name: str, **wanted: object) -> None:
    """
    Wait until a slot's ad says so (or, without anything to say, is gone): what waits for the usual update comes too late.
    """
    async with asyncio.timeout(PATIENCE_S):
        while True:
            ad = await slot(submitter, name)
            if (ad is None) if not wanted else (ad is not None and wanted.items() <= ad.items()):
                return
            await asyncio.sleep(0.005)


async def test_a_claim_takes_resources_and_its_end_returns_them(submitter: SubmitSide) -> None:
    """The partitionable slot shows at once what is left, the dynamic slot comes and goes."""
    await until_slot(submitter, "slot1@worker", Cpus=8, Memory=4096, State="Unclaimed")

    claim = await submitter.claim(RequestCpus=2, RequestMemory=200)
    await until_slot(submitter, "slot1@worker", Cpus=6, Memory=4096 - 256, NumDynamicSlots=1)
    await until_slot(submitter, "slot1_1@worker", Cpus=2, Memory=256, State="Claimed", Activity="Idle")

    release = Release(claims=[claim], reason="no more jobs")
    await submitter.schedd.call(RELEASE, submitter.startd, release)
    await until_slot(submitter, "slot1@worker", Cpus=8, Memory=4096)
    await until_slot(submitter, "slot1_1@worker")


async def test_a_busy_slot_names_its_job(submitter: SubmitSide) -> None:
    """The dynamic slot's ad shows activity, job and owner."""
    activation = await submitter.start(script("sleep 600"))

    await until_slot(
        submitter, "slot1_1@worker", Activity="Busy", JobId=str(activation.job), RemoteOwner="alice"
    )


async def test_as_many_claims_are_granted_as_there_is_room_for(submitter: SubmitSide) -> None:
    """Eight cores are eight claims; the ninth is refused with a reason."""
    decided = await submitter.request(9)

    assert 8 == len({grant.slot for grant in decided.granted})
    assert "not enough" in decided.reason


async def test_a_repeated_request_returns_the_first_answer(submitter: SubmitSide) -> None:
    """Nothing is carved twice, and a wrong secret gets nothing."""
    keys = [ClaimKey("a", "1"), ClaimKey("b", "2")]
    first = await submitter.request_keys(keys)
    again = await submitter.request_keys(keys)
    thief = await submitter.request_keys([ClaimKey("a", "x")])

    assert [(g.claim, g.slot) for g in first.granted] == [(g.claim, g.slot) for g in again.granted]
    assert [] == thief.granted


async def test_a_stale_match_is_refused(submitter: SubmitSide) -> None:
    """Who does not have the capability of this startd gets no claim."""
    decided = await submitter.request_keys([ClaimKey("a", "1")], capability="stale")

    assert [] == decided.granted
    assert "out of date" in decided.reason


async def test_the_wrong_secret_starts_nothing(submitter: SubmitSide) -> None:
    """ActivationRefusedClaimNotFound."""
    claim = await submitter.claim()

    result = await submitter.activate(submitter.activation(ClaimKey(claim.claim, "wrong"), job_ad()))

    assert 1034 == result.code


async def test_an_activation_that_is_repeated_runs_once(submitter: SubmitSide) -> None:
    """While the job runs and after it is over, the answer is the same: it runs, or ran, here."""
    activation = await submitter.start(script("echo x; sleep 0.2"))
    while_running = await submitter.activate(activation, activation)
    await submitter.final(activation)
    afterwards = await submitter.activate(activation)
    await asyncio.sleep(0.3)

    assert (0, 0) == (while_running.code, afterwards.code)
    started = {r.sequence for r in submitter.reports if isinstance(r.body, Started)}
    assert 1 == len(started)


async def test_another_job_is_refused_while_one_runs(submitter: SubmitSide) -> None:
    """The claim is not idle."""
    activation = await submitter.start(script("sleep 600"))

    result = await submitter.activate(submitter.activation(activation.key, job_ad()))

    assert 1032 == result.code


async def test_a_claim_is_used_again_and_its_reports_never_share_a_number(submitter: SubmitSide) -> None:
    """
    Job after job on one claim; (claim, attempt, sequence) names one report although each attempt is the first.
    """
    claim = await submitter.claim()
    for _ in range(3):
        exited = await submitter.final(await submitter.start(job_ad(Cmd="/bin/true"), claim=claim))
        assert exited.result.exit is not None

    keys = {(r.claim, r.attempt, r.sequence) for r in submitter.reports}
    jobs = {(r.job, r.sequence) for r in submitter.reports}
    assert len(jobs) == len(keys)


async def test_a_lease_that_ends_kills_the_job(submitter: SubmitSide) -> None:
    """The job is reported as lost, and the claim is gone when that is on record, not before."""
    activation = await submitter.start(
        script("trap '' TERM; sleep 60"), claim=await submitter.claim(lease=10.0)
    )

    failed = await submitter.final(activation)

    assert failed.result.exit is None

    assert failed.result.ending is not None
    assert (False, 1008) == (failed.result.ending.holds, failed.result.ending.code)
    alive = Alive(schedd=SCHEDD, claims=[activation.key], deadline=None)
    assert [] == (await submitter.schedd.call(ALIVE, submitter.startd, alive)).unknown
    recorded = Confirm(recorded=[report.key for report in submitter.reports])
    await submitter.shadow.call(CONFIRM, submitter.startd, recorded)
    assert [activation.key.claim] == (await submitter.schedd.call(ALIVE, submitter.startd, alive)).unknown


async def test_a_renewed_lease_keeps_the_job(submitter: SubmitSide) -> None:
    """Renewals count on the worker's clock; a claim that is left out is told."""
    other = await submitter.claim()
    lease = 6.0
    claim = await submitter.claim(lease=lease)
    granted = boottime()
    activation = await submitter.start(script(f"sleep {lease + 0.5}"), claim=claim)
    reply = AliveReply(clock=0.0)
    while boottime() < granted + lease + 0.5:
        asked = boottime()
        alive = Alive(schedd=SCHEDD, claims=[claim], deadline=asked + 100)
        reply = await submitter.schedd.call(ALIVE, submitter.startd, alive)
        assert asked <= reply.clock <= boottime()
        await asyncio.sleep(0.12)

    assert (await submitter.final(activation)).result.exit is not None
    assert ([], [other.claim]) == (reply.unknown, reply.extra)


async def test_release_ends_what_runs(submitter: SubmitSide) -> None:
    """The job is ended softly and its slot given back."""
    activation = await submitter.start(script("sleep 600"))

    await submitter.schedd.call(RELEASE, submitter.startd, Release(claims=[activation.key], reason="enough"))

    failed = await submitter.final(activation)
    assert failed.result.exit is None
    assert failed.result.ending is not None
    assert (1017, "enough") == (failed.result.ending.code, failed.result.ending.reason)
    await until_slot(submitter, "slot1_1@worker")


async def test_ads_are_withdrawn_at_the_end(pool: WorkerPool) -> None:
    """A drained startd leaves neither ads nor sandboxes, and ends what ran with code 1013."""
    async with pool.startd() as startd:
        activation = await pool.submitter.start(script("sleep 600"))
        await startd.drain()

    failed = await pool.submitter.final(activation)
    assert failed.result.exit is None
    assert failed.result.ending is not None
    assert 1013 == failed.result.ending.code
    assert await slot(pool.submitter, "slot1@worker") is None
    assert [] == list(pool.execute.glob("dir_*"))
