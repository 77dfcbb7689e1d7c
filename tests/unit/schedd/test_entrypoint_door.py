"""
Whose jobs come in to be routed: what their credential says counts, and nothing that they say themselves.
"""

import asyncio
import pwd
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

import msgspec
import pytest

from kettle.accounts.lookup import Accounts
from kettle.bus.ports import RefusedError
from kettle.eventsourcing.memory import MemoryLog, MemoryWorkingSet
from kettle.eventsourcing.shard import Shard
from kettle.jobs import chirp_updates, editable_attributes, routed_attributes
from kettle.jobs.sealed_attributes import AttributeSeal
from kettle_services.schedd.commands.entrypoint_door import EntrypointDoor
from kettle_services.schedd.commands.submissions import Submissions
from kettle_services.schedd.domain.queue.fold import Queue
from kettle_services.schedd.queue.backlog import Backlog
from kettle_services.schedd.queue.limits import QueueLimits
from kettle_services.schedd.queue.recorder import QueueRecorder, restore
from kettle_services.schedd.settings import ScheddSettings
from kettle_wire.ads import Ad
from kettle_wire.attempts import ExitRecord, Usage
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.schedd import Submit
from kettle_wire.events import ClusterSubmitted, JobCompleted, JobKept, JobReleased, JobRemoved
from kettle_wire.identity import user
from kettle_wire.people import Shown

ACCOUNTS = Accounts(
    privileged=True, directory=lambda name: pwd.struct_passwd((name, "x", 70_000, 70_000, "", "/", ""))
)
SENT = [("1.0", 3000), ("1.1", 3000), ("2.0", 4000)]
QUOTA = (
    "the files of the VO cms take 12.5 kB of the spool, and may take 10 kB (max_spool of [schedd.vos.cms]): fetch the results of its jobs "
    "that have ended (condor_transfer_data), or remove jobs (condor_rm); its largest clusters are 2 (6.5 kB), 1 (6 kB)"
)
RULE = "rules.toml:1: when issuer = https://cms.example.org/: vo cms"
CMS = Shown(
    vo="cms",
    rule=RULE,
    issuer="https://cms.example.org/",
    subject="pilot",
    token="t-1",
    groups=("/cms", "/cms/pilots"),
    scopes=("compute.create", "compute.read"),
)
PEOPLE: dict[str, Shown] = {
    "ada": CMS,
    "bob": msgspec.structs.replace(CMS, vo="belle", rule="rules.toml:6: vo belle"),
    "eve": msgspec.structs.replace(CMS, vo="", rule="rules.toml:9: when anybody: nothing"),
    "tim": Shown(issuer="https://else.example.org/"),
}
OF_CMS: Ad = {
    "x509UserProxyVOName": "cms",
    "AuthTokenIssuer": "https://cms.example.org/",
    "AuthTokenSubject": "pilot",
    "AuthTokenId": "t-1",
    "AuthTokenGroups": "/cms,/cms/pilots",
    "AuthTokenScopes": "compute.create,compute.read",
}


class Entrance:
    """What a schedd has of an entrypoint and of submissions, and nothing else."""

    def __init__(self, recorder: QueueRecorder, settings: ScheddSettings) -> None:
        async def shown_by(owner: str) -> Shown | None:
            return PEOPLE.get(owner)

        self.recorder = recorder
        self._numbers = count()
        self.door = EntrypointDoor(recorder.queue, settings.vos, shown_by)
        self._submissions = Submissions(
            recorder,
            QueueLimits(recorder.queue, settings),
            Backlog(recorder.shard, limit=1000),
            settings,
            ACCOUNTS,
            AttributeSeal([bytes(32)]),
            door=self.door if settings.entrypoint else None,
        )

    async def submit(self, owner: str, jobs: int = 1, ad: Ad | None = None, *, spool: bool = False) -> Ad:
        """The ad with which jobs are recorded; `spool`: their files are to be sent."""
        request = Submit(
            id=str(next(self._numbers)),
            ad={"Cmd": "/bin/true", "JobUniverse": 5, **(ad or {})},
            columns=[],
            rows=[[] for _ in range(jobs)],
            spool=spool,
        )
        decision = await self._submissions.submit(request, user(owner))
        await self.recorder.record(decision.changes)
        _, event = decision.changes[0]
        assert isinstance(event, ClusterSubmitted)
        return event.ad

    async def refusal(
        self, owner: str, jobs: int = 1, ad: Ad | None = None, *, spool: bool = False
    ) -> tuple[str, str]:
        """Why jobs are refused."""
        with pytest.raises(RefusedError) as refused:
            await self.submit(owner, jobs, ad, spool=spool)
        return refused.value.code, str(refused.value)


@asynccontextmanager
async def entrance(**settings: object) -> AsyncGenerator[Entrance]:
    """By default of an entrypoint for jobs of cms, three at the most, that routes what is not local."""
    said: dict[str, object] = {
        "entrypoint": True,
        "route_jobs": "Local isnt true",
        "vos": {"cms": {"max_jobs": 3}},
        **settings,
    }
    async with opened(MemoryLog(), said) as ce:
        yield ce


@asynccontextmanager
async def opened(log: MemoryLog, said: dict[str, object]) -> AsyncGenerator[Entrance]:
    """One that remembers what is in the log."""
    queue = Queue("ap")
    async with Shard.own(log, "schedd.ap", owner="me") as shard, asyncio.TaskGroup() as tasks:
        committing = tasks.create_task(shard.run())
        recorder = QueueRecorder(
            shard, queue, await restore(log, MemoryWorkingSet(log), shard, queue, interval=1.0)
        )
        yield Entrance(recorder, msgspec.convert(said, ScheddSettings))
        committing.cancel()


async def test_the_ad_says_what_the_credential_does() -> None:
    """It is what the VO's jobs are counted by."""
    async with entrance() as ce:
        ad = await ce.submit("ada")
        assert {name: ad[name] for name in OF_CMS} == OF_CMS
        assert ad["AwaitsRoute"] is True
        assert ce.recorder.queue.routing.vos["cms"].jobs == 1


@pytest.mark.parametrize("name", [*OF_CMS, "authtokengroups"])
async def test_nobody_says_himself_with_what_he_has_come(name: str) -> None:
    """
    Not where there is no entrypoint either, whose records would believe it; nor later: by hand, while it runs, or by a route that
    follows what a job says.
    """
    plain: dict[str, object] = {"entrypoint": False, "route_jobs": "false", "vos": {}}
    for settings in (dict[str, object](), plain):
        async with entrance(**settings) as ce:
            code, why = await ce.refusal("ada", ad={name: "/atlas"})
            assert (RefusalCode.UNACCEPTABLE, True) == (code, f"the attribute {name} is set by" in why)

    assert editable_attributes.refusal(name)
    assert routed_attributes.refusal(name)
    assert chirp_updates.refusal(name)


async def test_a_credential_of_no_vo_is_refused_with_the_rule() -> None:
    """Each of the ways to be of none that the entrypoint takes."""
    async with entrance() as ce:
        said = {name: await ce.refusal(name) for name in ("bob", "eve", "tim", "joe")}
        assert {RefusalCode.CE_VO_NOT_ALLOWED} == {code for code, _ in said.values()}
        words = {
            "bob": "the VO belle is none of this entrypoint, which takes jobs of cms only ([schedd.vos]); the credential of "
            "https://cms.example.org/ is of it by the rule rules.toml:6: vo belle",
            "eve": "Unknown VO: the credential of https://cms.example.org/ is of none by the rule rules.toml:9: when anybody: nothing",
            "tim": "Unknown VO: no rule is about the credential of https://else.example.org/ (rules of [authorization])",
            "joe": "Unknown VO: joe has come with no credential of which a rule says the VO, and this entrypoint takes jobs of cms only "
            "([schedd.vos])",
        }
        assert words == {name: why for name, (_, why) in said.items()}


async def test_jobs_that_are_not_routed_are_everybodys() -> None:
    """They count for no VO, and say with what their owner has come."""
    async with entrance() as ce:
        assert OF_CMS.keys().isdisjoint(await ce.submit("joe", ad={"Local": True}))
        assert "belle" == (await ce.submit("bob", ad={"Local": True}))["x509UserProxyVOName"]
        ce.door.draining = "ce.draining: root drains the entrypoint"
        await ce.submit("eve", ad={"Local": True})
        assert {} == ce.recorder.queue.routing.vos


async def test_a_vo_has_only_so_many_jobs() -> None:
    """The jobs of all its people count together, and a submission is refused or taken as a whole."""
    async with entrance() as ce:
        await ce.submit("ada", 2)
        code, why = await ce.refusal("ada", 2)
        assert (RefusalCode.CE_VO_FULL, True) == (
            code,
            "the VO cms has 2 jobs here; 2 more would exceed 3" in why,
        )
        await ce.submit("ada")


async def test_a_vo_has_only_so_much_of_the_spool(tmp_path: Path) -> None:
    """
    What was sent and what is left to be fetched counts, also after a restart; who is over it hears of how much, and what to delete.
    """
    said: dict[str, object] = {
        "entrypoint": True,
        "route_jobs": "true",
        "vos": {"cms": {"max_spool": 10_000}},
        "home": str(tmp_path),
    }
    log = MemoryLog()
    async with opened(log, said) as ce:
        await ce.submit("ada", 2, spool=True)
        await ce.submit("ada", spool=True)
        sent = [(f"job/{job}", JobReleased(reason="Data files spooled", spooled=size)) for job, size in SENT]
        await ce.recorder.record(sent)
        await ce.submit("ada", spool=True)  # as much as it may have is not more
        done = JobCompleted(attempt=1, exit=ExitRecord(code=0), usage=Usage(sent=2500))
        await ce.recorder.record([("job/2.0", JobKept()), ("job/2.0", done)])
        assert {1: 6000, 2: 6500} == dict(ce.recorder.queue.routing.vos["cms"].spooled_by)
    async with opened(log, said) as ce:
        code, why = await ce.refusal("ada", spool=True)
        assert (RefusalCode.CE_VO_SPOOL_FULL, QUOTA) == (code, why)
        await ce.submit("ada")  # one that sends nothing
        await ce.recorder.record([("job/1.0", JobRemoved(reason="too large"))])
        await ce.submit("ada", spool=True)
        assert 9500 == ce.recorder.queue.routing.vos["cms"].spooled


async def test_a_drained_entrypoint_takes_nothing() -> None:
    """What is not for it goes on; without a list of VOs, too."""
    async with entrance(vos={}) as ce:
        ce.door.draining = "ce.draining: root drains the entrypoint: new cooling"
        assert (RefusalCode.CE_DRAINING, f"{ce.door.draining}; submit again later") == await ce.refusal("joe")
        ce.door.draining = ""
        await ce.submit("joe")
