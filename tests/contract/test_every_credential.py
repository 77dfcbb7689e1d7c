"""
Every credential of a pool tried on every subject of every other one, and on subjects that nobody declares: what is not its
own, the server refuses.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Iterable
from typing import NamedTuple

import pytest
import pytest_asyncio
from nats.aio.client import Client
from nats.errors import Error

from kettle.auth.bus_permissions import (
    BEARER,
    BEARING_ADMINISTRATOR,
    FORWARDER,
    JOINED,
    JOINED_SHARDS,
    MONITOR,
    READER,
    SHARDS,
    SUBMITTER,
    VISITOR,
    permissions,
)
from kettle.auth.trust.accounts import uses
from kettle.auth.trust.callout import ANSWERING, RESPONDER, WATCHER, watches
from kettle.embedded import EmbeddedNats
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.embedded import server_directory
from kettle.testing.servers.members import KINDS, SENTINEL, Members
from kettle_wire.identity import Identity, bearer, daemon, user, visitor, worker
from kettle_wire.subjects import API, Subjects

SUBJECTS = Subjects("pool")
SERVICES = (
    "schedd",
    "shadow",
    "collector",
    "negotiator",
    "accounting",
    "gateway",
    "audit",
    "master",
    "iam",
    "dagman",
    "sessions",
    "ce",
    "scaler",
    "provisioner",
)
WHO: dict[str, tuple[str, Identity]] = {role: (role, daemon(role)) for role in SERVICES} | {
    "startd": ("startd", worker("host")),
    "neighbour": ("startd", worker("other.host")),
    "ada": ("user", user("ada")),
    "bob": ("user", user("bob")),
    "rita": (READER, bearer("rita")),
    "bearer": (BEARER, bearer("bea")),
    "bearing administrator": (BEARING_ADMINISTRATOR, bearer("bert")),
    "job": (SUBMITTER, bearer("sam")),
    "administrator": ("administrator", user("grace")),
    "monitor": (MONITOR, daemon(MONITOR)),
    "visitor": (VISITOR, visitor("ap@home")),
    "forwarder": (FORWARDER, visitor("view@home")),
    **{
        f"{role} of {access_point}": (joined, daemon(role, access_point))
        for joined, role in JOINED.items()
        for access_point in ("ap1", "ap2")
    },
}
OF_JOINED = [f"schedd.{access_point}" for access_point in ("ap1", "ap2")]
OF_IAM = {RESPONDER.name: RESPONDER, WATCHER.name: WATCHER}
"""What an iam has beside its credential as a service, each in another account."""
IDENTITIES = {name: identity for name, (_role, identity) in WHO.items()} | OF_IAM
NOBODYS = (
    "$SYS.REQ.SERVER.PING",
    "$SYS.REQ.ACCOUNT.A.CLAIMS.UPDATE",
    "$SYS.REQ.USER.AUTH",
    "$JS.API.STREAM.DELETE.KETTLE_pool_WORK",
    "$JS.API.STREAM.PURGE.KETTLE_pool_EVT_collector",
    "$JS.API.STREAM.UPDATE.KV_KETTLE_pool_ADS",
    "$JS.API.STREAM.MSG.DELETE.KV_KETTLE_pool_LEASES",
    "$JS.API.STREAM.CREATE.MINE",
    "$JS.API.CONSUMER.CREATE.KV_KETTLE_pool_PRIVATE",
    "$JS.API.CONSUMER.DURABLE.CREATE.KETTLE_pool_WORK.mine",
    "$JS.API.SERVER.REMOVE",
    "kettle.js.STREAM.DELETE.KETTLE_pool_MONITOR",
    "kettle.js.STREAM.MSG.GET.KETTLE_pool_WORK",
    "kettle.pool.cmd.schedd.s.submit.u-root",
    "kettle.pool.cmd.schedd.s.submit",
    "kettle.pool.cmd.startd.host.activate.d-shadow.more",
    "kettle.pool.evt.another",
    "kettle.other.cmd.schedd.s.submit.u-ada",
    "$KV.KETTLE_pool_ADS.Scheduler",
    "$KV.KETTLE_pool_PRIVATE.slot1",
    "anything",
    "$SYS.REQ.USER.INFO",
    "$SYS.REQ.ACCOUNT.PING.CONNZ",
    "$SYS.REQ.SERVER.A.RELOAD",
    "$JS.API.INFO",
    "$JS.API.STREAM.NAMES",
    "$JS.API.STREAM.SNAPSHOT.KETTLE_pool_EVT_identity",
    "$JS.API.STREAM.RESTORE.KETTLE_pool_WORK",
    "$JS.API.CONSUMER.CREATE.KETTLE_pool_EVT_identity.x",
    "$JS.API.CONSUMER.MSG.NEXT.KETTLE_pool_EVT_identity.x",
    "$JS.API.CONSUMER.PAUSE.KETTLE_pool_MONITOR.x",
    "$JS.API.CONSUMER.UNPIN.KETTLE_pool_MONITOR.x",
    "$JS.API.DIRECT.GET.KETTLE_pool_EVT_identity",
    "$JS.API.META.LEADER.STEPDOWN",
    "$JS.API.ACCOUNT.PURGE.A",
    "$JS.FC.KETTLE_pool_MONITOR.x.y",
    "$JS.ACK.KETTLE_pool_EVT_identity.x.1.1.1.1.0",
    "$O.KETTLE_pool_OBJECTS.C.x",
    "$MQTT.sub.x",
    "kettle.js.INFO",
    "kettle.js.STREAM.NAMES",
    "kettle.js.CONSUMER.NAMES.KETTLE_pool_MONITOR",
    "kettle.js.CONSUMER.CREATE.KETTLE_pool_EVT_identity.x",
    "kettle.js.DIRECT.GET.KETTLE_pool_OBJECTS",
    "kettle.pool.readers.KETTLE_pool_MONITOR.x",
    "kettle.pool.private.identity",
    "kettle.pool.monitor.ada.job.completed",
)
FILTERS = {
    "$SYS.>",
    "$JS.>",
    "$KV.>",
    "_R_.>",
    "_INBOX.>",
    "_INBOX.*.>",
    "kettle.>",
    "kettle.pool.*.>",
    "*.>",
    "*",
}
SHARDS_HERE = {**SHARDS, "schedd": [*SHARDS["schedd"], *OF_JOINED], JOINED_SHARDS: OF_JOINED}
_VIOLATION = re.compile(r'permissions violation for (publish|subscription) to "([^"]*)"')


class Pool(NamedTuple):
    server: EmbeddedNats
    people: str
    """The public key of the account of people."""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def pool() -> AsyncIterator[Pool]:
    with server_directory() as directory:
        members = Members(directory / "keys", SUBJECTS, WHO, callout=True)
        async with EmbeddedNats(directory / "nats", trust=members) as server:
            yield Pool(server, members.callout_keys().people_account)


def rights(name: str, people: str = "A") -> tuple[list[str], list[str]]:
    if name in OF_IAM:
        may = ANSWERING if name == RESPONDER.name else watches(people)
        return list(may.publish), list(may.subscribe)
    role, identity = WHO[name]
    shards = SHARDS if role in {"schedd", "shadow"} else SHARDS_HERE
    own = permissions(role, SUBJECTS, identity, shards=shards, guest=role in KINDS)
    if role in {"administrator", BEARING_ADMINISTRATOR}:
        more = permissions(MONITOR, SUBJECTS, identity, guest=True)
        return [*own[0], *more[0]], [*own[1], *more[1]]
    return own


def permits(pattern: str, subject: str) -> bool:
    """The meaning of a pattern, by itself: not by what made the permissions, and not by the server."""
    wanted, given = pattern.split("."), subject.split(".")
    for place, part in enumerate(wanted):
        if part == ">":
            return len(given) > place
        if place >= len(given) or part not in {"*", given[place]}:
            return False
    return len(wanted) == len(given)


def concrete(patterns: Iterable[str]) -> set[str]:
    return {pattern.replace("*", "x").replace(">", "x.y") for pattern in patterns}


async def refused(pool: Pool, name: str, publish: set[str], subscribe: set[str]) -> set[tuple[str, str]]:
    """What the server says no to."""
    found: set[tuple[str, str]] = set()

    async def note(error: Exception) -> None:
        if said := _VIOLATION.search(str(error)):
            found.add((said[1], said[2]))

    client = Client()
    await client.connect(
        pool.server.url,
        user_credentials=str(pool.server.credentials(name)),
        inbox_prefix=IDENTITIES[name].inbox.encode(),
        error_cb=note,
        connect_timeout=int(PATIENCE_S),
        allow_reconnect=False,
    )
    try:
        for subject in sorted(publish):
            await client.publish(subject, b"")
        for subject in sorted(subscribe):
            await client.subscribe(subject)  # pyright: ignore[reportUnknownMemberType]
        async with asyncio.timeout(PATIENCE_S):
            for _ in range(
                2
            ):  # the client's flush overtakes what still waits to be written when it is called
                await client.flush()
            expected = {
                *(("publish", each.lower()) for each in publish),
                *(("subscription", each.lower()) for each in subscribe),
            }
            while found != expected and not client.is_closed:
                before = len(found)
                await client.flush()
                if len(found) == before:
                    break
        return found
    finally:
        await client.close()


@pytest.mark.parametrize("name", IDENTITIES)
async def test_a_credential_opens_what_is_declared_for_it_and_nothing_else(pool: Pool, name: str) -> None:
    """All that others may publish, or subscribe to, and more; several hundred subjects each."""
    others_publish = concrete(
        subject for other in IDENTITIES for subject in rights(other, pool.people)[0]
    ) | set(NOBODYS)
    others_subscribe = (
        {subject for other in IDENTITIES for subject in rights(other, pool.people)[1]}
        | set(NOBODYS)
        | FILTERS
        | {">"}
    )
    own_publish, own_subscribe = rights(name, pool.people)
    closed_publish = {each for each in others_publish if not any(permits(own, each) for own in own_publish)}
    closed_subscribe = {
        each for each in others_subscribe if not any(permits(own, each) for own in own_subscribe)
    }
    assert len(closed_publish) > 100
    said = await refused(pool, name, closed_publish, closed_subscribe)
    assert {("publish", each.lower()) for each in closed_publish} == {
        each for each in said if each[0] == "publish"
    }
    assert {("subscription", each.lower()) for each in closed_subscribe} == {
        each for each in said if each[0] == "subscription"
    }


def test_nobody_from_another_account_has_jetstream_make_anything() -> None:
    """
    Who makes a consumer names the subject to which JetStream delivers, with rights of its own: an event stream, a lease, anything.
    """
    shared = [use.subject for use in uses(SUBJECTS)]
    assert [] == [subject for subject in shared if subject.startswith(API) and ".CREATE." in subject]


@pytest.mark.parametrize("of", ["shadow", "schedd"])
async def test_an_access_point_asks_no_queue_but_its_own(pool: Pool, of: str) -> None:
    """Handlers look at the role of who asks: the server has to hold the name."""
    verbs = {
        "shadow": [
            ("schedd", "sync"),
            ("schedd", "report"),
            ("schedd", "job_command"),
            ("schedd", "find_spool"),
            ("log", "frames"),
        ],
        "schedd": [("shadow", "look_after")],
    }[of]

    def asked(name: str) -> set[str]:
        caller = f"d-{of}=2Eap1"
        return {
            f"kettle.pool.cmd.{role}.{f'schedd=2E{name}' if role == 'log' else name}.{verb}.{caller}"
            for role, verb in verbs
        }

    closed = {subject for name in ("schedd", "shadow", "ap2") for subject in asked(name)}
    for verb in ("issue_job_tokens", "end_job_tokens"):
        closed.add(f"kettle.pool.cmd.iam.iam.{verb}.d-{of}=2Eap1")
    said = await refused(pool, f"{of} of ap1", closed | asked("ap1"), set())
    assert {("publish", each.lower()) for each in closed} == said


@pytest.mark.parametrize("name", IDENTITIES)
async def test_a_credential_opens_all_that_is_declared_for_it(pool: Pool, name: str) -> None:
    """The forms in which the accounts state permissions say the same as the declarations."""
    publish, subscribe = rights(name, pool.people)
    assert set() == await refused(pool, name, concrete(publish), set(subscribe))


def as_another(subject: str, who: str, other: str) -> str:
    """What a subject below somebody's name is for somebody else."""
    names = {
        IDENTITIES[who].name: IDENTITIES[other].name,
        IDENTITIES[who].token: IDENTITIES[other].token,
    }
    return ".".join(names.get(part, part) for part in subject.split("."))


def test_who_only_reads_sends_no_commands() -> None:
    """What a reader may publish that a person may not is nothing, and what is left out changes something."""
    reader, person = set(rights("rita")[0]), {as_another(each, "ada", "rita") for each in rights("ada")[0]}
    assert reader < person
    left_out = {each.split(".")[-2] for each in person - reader if ".cmd." in each}
    assert {"submit", "act", "issue_token", "open_session", "access"} <= left_out


def test_a_job_submits_and_does_nothing_to_what_is_there() -> None:
    """Beside what a reader may, a job sends jobs and their files."""
    job, reader = set(rights("job")[0]), {as_another(each, "rita", "job") for each in rights("rita")[0]}
    assert {"submit_from_job", "submit_many_from_job", "spool_parts", "spool_jobs_from_job"} == {
        each.split(".")[-2] for each in job - reader
    }
    assert not reader - job
    assert {"submit", "submit_many", "spool_jobs"}.isdisjoint(each.split(".")[-2] for each in job)


async def test_a_sentinel_without_a_token_is_not_even_let_in(pool: Pool) -> None:
    """Nobody answers for it here, and it may do nothing if somebody did."""
    client = Client()
    with pytest.raises(Error, match="Authorization Violation"):
        await client.connect(
            pool.server.url,
            user_credentials=str(pool.server.credentials(SENTINEL)),
            connect_timeout=int(PATIENCE_S),
            allow_reconnect=False,
            error_cb=_unheard,
        )
    await client.close()


async def _unheard(_error: Exception) -> None:
    """What is said is raised, too."""
