"""
Subjects that are not made from the declarations: what a pool really said and heard, and what NATS documents.

`traffic.txt` is what the server of a pool traced (`trace: true`) while its services were restarted, jobs were submitted and ran,
and an administrator used it; each line has who it was, PUB or SUB, and the subject, with other names for people, machine
and pool, and `id` for what is made by chance.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Iterable, Iterator
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio
from nats.aio.client import Client

from kettle.embedded import EmbeddedNats
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.embedded import server_directory
from kettle.testing.servers.members import Members
from kettle_wire.identity import Identity, daemon, user, visitor, worker
from kettle_wire.subjects import Subjects

SERVICES: Final = frozenset({
    "schedd", "shadow", "collector", "negotiator", "accounting", "gateway", "audit", "master", "iam", "dagman", "ce", "scaler",
    "provisioner", "sessions",
})  # fmt: skip
ALL: Final[dict[str, tuple[str, Identity]]] = {role: (role, daemon(role)) for role in sorted(SERVICES)} | {
    "startd": ("startd", worker("host")),
    "neighbour": ("startd", worker("other.host")),
    "ada": ("user", user("ada")),
    "bob": ("user", user("bob")),
    "administrator": ("administrator", user("grace")),
    "monitor": ("monitor", daemon("monitor")),
    "visitor": ("visitor", visitor("ap@home")),
    "forwarder": ("forwarder", visitor("view@home")),
}
_VIOLATION: Final = re.compile(r'permissions violation for (publish|subscription) to "([^"]*)"')
FOLLOWERS: Final = frozenset({"accounting", "audit", "dagman", "gateway", "sessions", "shadow"})
OWNERS: Final = frozenset(
    {"schedd", "collector", "negotiator", "accounting", "iam", "dagman", "ce", "scaler", "sessions"}
)

ALSO: Final[dict[str, frozenset[str]]] = {
    # Answers: services at places for answers in their account, everybody where the server waits for those of another account.
    "PUB _INBOX.>": SERVICES,
    "PUB _R_.>": SERVICES | {"startd", "neighbour", "visitor"},
    # Who follows events reads the stream of the schedd, and lets go of what it read with.
    "PUB $JS.ACK.KETTLE_pool_EVT_schedd_2Eschedd.>": FOLLOWERS,
    "PUB $JS.API.CONSUMER.DELETE.KETTLE_pool_EVT_schedd_2Eschedd.*": FOLLOWERS,
    "PUB $JS.API.CONSUMER.DELETE.KETTLE_pool_EVT_collector.*": FOLLOWERS - {"shadow", "dagman", "sessions"},
    "PUB $JS.API.CONSUMER.DELETE.KETTLE_pool_EVT_negotiator.*": FOLLOWERS - {"shadow", "dagman", "sessions"},
    # What was seen had no workflows and sessions, of whose jobs a dagman and the service of sessions read what becomes of them.
    "PUB $JS.API.STREAM.INFO.KETTLE_pool_EVT_schedd_2Eschedd": frozenset({"dagman", "sessions"}),
    "PUB $JS.API.CONSUMER.*.KETTLE_pool_EVT_schedd_2Eschedd.>": frozenset({"dagman", "sessions"}),
    "PUB $JS.API.CONSUMER.MSG.NEXT.KETTLE_pool_EVT_schedd_2Eschedd.*": frozenset({"dagman", "sessions"}),
    # An entrypoint reports as startds do, which look at the stream of reports.
    "PUB $JS.API.STREAM.INFO.KETTLE_pool_WORK": frozenset({"ce"}),
    # A collector makes the readers of reports for visitors; it, the negotiator and the scaler follow all ads.
    "PUB $JS.API.CONSUMER.CREATE.KETTLE_pool_WORK.*.kettle.pool.work.>": frozenset({"collector"}),
    "PUB $JS.API.CONSUMER.CREATE.KV_KETTLE_pool_ADS.>": frozenset({"collector", "negotiator", "scaler"}),
    "PUB $JS.API.CONSUMER.MSG.NEXT.KV_KETTLE_pool_ADS.*": frozenset({"scaler"}),
    # Owners of shards keep leases, and answer for frames.
    "PUB $JS.API.CONSUMER.DELETE.KV_KETTLE_pool_LEASES.*": OWNERS,
    "PUB $JS.API.CONSUMER.MSG.NEXT.KV_KETTLE_pool_LEASES.*": OWNERS,
    "PUB $JS.API.STREAM.INFO.KV_KETTLE_pool_LEASES": OWNERS,
    "SUB kettle.pool.cmd.log.*.frames.*": OWNERS,
    # Whether there are a bucket for ads and a stream for reports, may know who writes there.
    "PUB $JS.API.STREAM.INFO.KV_KETTLE_pool_ADS": SERVICES,
    "PUB kettle.js.STREAM.INFO.KETTLE_pool_WORK": frozenset({"neighbour", "visitor"}),
    "PUB kettle.js.STREAM.INFO.KV_KETTLE_pool_ADS": frozenset({"neighbour"}),
    "PUB kettle.js.STREAM.INFO.KV_KETTLE_pool_PRIVATE": frozenset({"neighbour"}),
    # Live frames of the queue are for everybody who may query it; notices, which say nothing, are for services.
    "SUB kettle.pool.evt.schedd=2Eschedd": frozenset({"ada", "bob"}),
    "SUB kettle.pool.notice.>": SERVICES,
}
"""Who else may do what was seen, and why."""


def words(text: str) -> list[str]:
    return text.split()


STREAMS: Final = words("""
    KETTLE_pool_WORK KETTLE_pool_MONITOR KETTLE_pool_EVT_identity KETTLE_pool_EVT_schedd_2Eschedd
    KETTLE_pool_EVT_collector KETTLE_pool_EVT_negotiator KV_KETTLE_pool_ADS KV_KETTLE_pool_PRIVATE
    KV_KETTLE_pool_LEASES OTHER
""")
OF_STREAMS: Final = words("""
    STREAM.UPDATE.{} STREAM.DELETE.{} STREAM.PURGE.{} STREAM.MSG.DELETE.{} STREAM.SNAPSHOT.{}
    STREAM.RESTORE.{} STREAM.PEER.REMOVE.{} STREAM.LEADER.STEPDOWN.{} CONSUMER.CREATE.{}
    CONSUMER.DURABLE.CREATE.{}.mine CONSUMER.NAMES.{} CONSUMER.LIST.{} CONSUMER.PAUSE.{}.mine
    CONSUMER.UNPIN.{}.mine CONSUMER.LEADER.STEPDOWN.{}.mine
""")
"""Calls of JetStream's interface that no member of a pool makes, for every stream (docs.nats.io, "JetStream API")."""
OF_SERVERS: Final = words("""
    $JS.API.INFO $JS.API.STREAM.NAMES $JS.API.META.LEADER.STEPDOWN $JS.API.SERVER.REMOVE
    $JS.API.ACCOUNT.PURGE.A $JS.API.ACCOUNT.STREAM.MOVE.A.B $JS.API.ACCOUNT.STREAM.CANCEL_MOVE.A.B
    $JS.FC.KETTLE_pool_WORK.x $JS.EVENT.ADVISORY.STREAM.DELETED.X $JSC.CI.x $NRG.V.x $KV.OTHER.x
    $SYS.REQ.SERVER.PING $SYS.REQ.SERVER.PING.CONNZ $SYS.REQ.SERVER.A.RELOAD $SYS.REQ.SERVER.A.KICK
    $SYS.REQ.SERVER.PING.JSZ $SYS.REQ.ACCOUNT.PING.CONNZ $SYS.REQ.ACCOUNT.A.CLAIMS.LOOKUP
    $SYS.REQ.CLAIMS.UPDATE $SYS.REQ.CLAIMS.DELETE $SYS.REQ.CLAIMS.LIST $SYS.REQ.CLAIMS.PACK
    $SYS.REQ.ACCOUNT.A.CLAIMS.UPDATE $SYS.REQ.USER.AUTH $SYS.ACCOUNT.A.CONNECT $SYS.DEBUG.SUBSCRIBERS
""")
"""Subjects of the server itself (docs.nats.io, "System events" and "Subject mapping of JetStream")."""
HEARD: Final = words("""
    > * *.> $JS.> $JS.API.> $JS.EVENT.> $JS.ACK.> $JSC.> $KV.> $SYS.> $SYS.REQ.> $NRG.> _INBOX.> _INBOX.*.>
    _R_.> kettle.> kettle.pool.> kettle.pool.cmd.> kettle.pool.private.> kettle.pool.private.identity
    $KV.KETTLE_pool_PRIVATE.> kettle.js.>
""")
"""
What nobody may hear.  `$SRV.>` is not here: who may hear `$SRV.*` may hear that, because the server takes the last part of a
subscription for a name; services are asked there whether they are there.
"""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def pool() -> AsyncIterator[EmbeddedNats]:
    with server_directory() as directory:
        async with EmbeddedNats(
            directory / "nats", trust=Members(directory / "keys", Subjects("pool"), ALL)
        ) as server:
            yield server


def seen() -> Iterator[tuple[str, str, str]]:
    for line in Path(__file__).with_name("traffic.txt").read_text().splitlines():
        who, verb, subject = line.split(" ")
        yield who, verb, subject


def permits(pattern: str, subject: str) -> bool:
    """The meaning of a pattern, by itself, and not by the server."""
    wanted, given = pattern.split("."), subject.split(".")
    for place, part in enumerate(wanted):
        if part == ">":
            return len(given) > place
        if place >= len(given) or part not in {"*", given[place]}:
            return False
    return len(wanted) == len(given)


async def opened(
    pool: EmbeddedNats, name: str, publish: Iterable[str], subscribe: Iterable[str]
) -> set[tuple[str, str]]:
    """What of it the server lets somebody do; it tells of each refusal, in small letters."""
    refused: set[tuple[str, str]] = set()

    async def note(error: Exception) -> None:
        if said := _VIOLATION.search(str(error)):
            refused.add((said[1], said[2]))

    client = Client()
    await client.connect(
        pool.url,
        user_credentials=str(pool.credentials(name)),
        inbox_prefix=ALL[name][1].inbox.encode(),
        error_cb=note,
        connect_timeout=int(PATIENCE_S),
        allow_reconnect=False,
    )
    asked = {("publish", each.lower()) for each in publish} | {
        ("subscription", each.lower()) for each in subscribe
    }
    try:
        for subject in sorted(publish):
            await client.publish(subject, b"")
        for subject in sorted(subscribe):
            await client.subscribe(subject)  # pyright: ignore[reportUnknownMemberType]
        async with asyncio.timeout(PATIENCE_S):
            # The client's flush overtakes what still waits to be written when it is called.
            await client.flush()
            while before := asked - refused:
                await client.flush()
                if asked - refused == before:
                    break
        return asked - refused
    finally:
        await client.close()


def others(verb: str, subject: str) -> frozenset[str]:
    """Who may say or hear what was seen: those who did, and those of whom it is written here."""
    did = {who for who, what, about in seen() if (what, about) == (verb, subject)}
    written = (who for pattern, who in ALSO.items() if permits(pattern, f"{verb} {subject}"))
    return frozenset(did).union(*written)


def test_the_recording_is_of_all_that_matters() -> None:
    """Every role is in it, and says something in each of the ways that there are."""
    assert {
        "schedd",
        "shadow",
        "collector",
        "negotiator",
        "accounting",
        "gateway",
        "audit",
        "iam",
        "startd",
    } < {who for who, _, _ in seen()}
    subjects = [subject for _, _, subject in seen()]
    assert len(subjects) > 200
    for start in ("$KV.", "$JS.API.", "$JS.ACK.", "kettle.js.", "kettle.pool.cmd.", "kettle.pool.evt.",
                  "kettle.pool.private.", "kettle.pool.tail.", "kettle.pool.work.", "kettle.pool.notice."):  # fmt: skip
        assert any(subject.startswith(start) for subject in subjects), start


@pytest.mark.parametrize("name", ALL)
async def test_nobody_says_or_hears_what_another_was_seen_to(pool: EmbeddedNats, name: str) -> None:
    """All that passed in a real pool, but for what is written here with its reason."""
    closed = {(verb, subject) for _, verb, subject in seen() if name not in others(verb, subject)}
    assert len(closed) > 100
    publish = {subject for verb, subject in closed if verb == "PUB"}
    subscribe = {subject for verb, subject in closed if verb == "SUB"}
    assert set() == await opened(pool, name, publish, subscribe)


@pytest.mark.parametrize("name", ALL)
async def test_nobody_reaches_the_servers_own_subjects(pool: EmbeddedNats, name: str) -> None:
    """Of JetStream, of the system, and wildcards over what belongs to several."""
    api = ("$JS.API", "kettle.js")
    publish = {f"{way}.{call.format(stream)}" for way in api for call in OF_STREAMS for stream in STREAMS}
    publish |= {*OF_SERVERS}
    assert set() == await opened(pool, name, publish, HEARD)
