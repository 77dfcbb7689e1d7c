"""
What a pool does with messages that no client of ours would send, and with a person who wants more than is theirs.
"""

import random
import re
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from functools import partial
from typing import Any, Final

import msgspec
import pytest
import pytest_asyncio
from msgspec import inspect
from nats.aio.client import Client as NatsClient

from kettle.bus.command_service import refusal_of
from kettle.bus.nats_connection import NatsConnection
from kettle.bus.ports import NoResponderError
from kettle.eventsourcing.log import Tenure
from kettle.storage import PgLog
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers import selection
from kettle.testing.services import eventually
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_services.master.domain.start_order import DAEMON_LIST
from kettle_wire.ads import Ad
from kettle_wire.commands import collector, schedd, shadow
from kettle_wire.commands.catalogue import ENDPOINTS, open_to
from kettle_wire.endpoint import Caller, Endpoint
from kettle_wire.events import CycleNegotiated, Event, PrincipalCharged, decode
from kettle_wire.identity import Identity, daemon, user, worker
from kettle_wire.subjects import API, GUESTS_API, Subjects

HERE: Final = [
    endpoint for endpoint in ENDPOINTS if endpoint.role != "iam" and set(endpoint.callers) != {Caller.IAM}
]
"""A pool of one person has no iam."""
FOR_PEOPLE: Final = [endpoint for endpoint in open_to(Caller.USER, Caller.ADMINISTRATOR) if endpoint in HERE]
"""What the pool's owner may ask, who is its administrator."""


@pytest.fixture(scope="module")
def configuration() -> dict[str, Any]:
    """
    Questions about frames that never come are answered at once that they are not there; a scaler has no pools yet, an entrypoint no routes.
    """
    return {
        "settings": {
            "accounting": {"patience": 0.1},
            "master": {"daemon_list": [*DAEMON_LIST, "scaler", "provisioner", "ce"]},
            "schedd": {"entrypoint": True},
        }
    }


def credentials(pool: ThrowawayPool, name: str) -> str:
    """
    The file with the credential of a user or service; on servers of somebody else all have the one of that.
    """
    own = pool.home / "credentials" / f"{name}.creds"
    return str(own) if own.exists() else pool.client.pool.credentials


def known_as(pool: ThrowawayPool, name: str) -> Identity:
    """As whom the holder of a credential speaks."""
    match name:
        case "user":
            return user(pool.client.pool.user)
        case "startd":
            return worker(socket.gethostname())
        case _:
            return daemon(name)


class Sender:
    """Sends whatever it is given, each time with the credential of somebody who may."""

    def __init__(self, pool: ThrowawayPool, stack: AsyncExitStack) -> None:
        self.pool = pool
        self.subjects = Subjects(pool.client.pool.pool)
        self._stack = stack
        self._open: dict[str, tuple[Identity, NatsConnection]] = {}

    async def _connected(self, name: str) -> tuple[Identity, NatsConnection]:
        if name not in self._open:
            who = known_as(self.pool, name)
            connection = await self._stack.enter_async_context(
                NatsConnection.open(
                    self.pool.client.pool.nats_url,
                    identity=who,
                    credentials=credentials(self.pool, name),
                    name="hostile",
                    patience=PATIENCE_S,
                )
            )
            self._open[name] = who, connection
        return self._open[name]

    async def send(self, endpoint: Endpoint[Any, Any], data: bytes, name: str = "") -> str:
        """The code of the refusal; empty if it was not refused."""
        who, connection = await self._connected(
            "user" if endpoint in FOR_PEOPLE else min(endpoint.callers - {Caller.VISITOR, Caller.AUDIT})
        )
        subject = self.subjects.command(endpoint.role, name or self.name(endpoint), endpoint.verb, who.token)
        answer = await connection.request(subject, data, deadline=PATIENCE_S)
        refusal = refusal_of(answer.headers, answer.data)
        if refusal is None:
            endpoint.decode_reply(answer.data)
            return ""
        assert str(refusal), f"{endpoint} refuses without a sentence"
        return refusal.code

    def name(self, endpoint: Endpoint[Any, Any]) -> str:
        role, pool = endpoint.role, self.pool.client.pool
        named = {
            "startd": self.machine,
            "shadow": "shadow",
            "log": f"schedd.{pool.schedd}",
            "dagman": pool.schedd,
            "sessions": pool.schedd,
            "ce": pool.schedd,
        }
        return named.get(role, str(getattr(pool, role, role)))

    machine: str = ""


@pytest_asyncio.fixture
async def sender(pool: ThrowawayPool) -> AsyncIterator[Sender]:
    async with AsyncExitStack() as stack:
        one = Sender(pool, stack)
        (ad,) = await pool.client.ads("Machine")
        one.machine = str(ad["Machine"])
        await eventually(partial(recorded, pool), within=PATIENCE_S)
        yield one


async def heads(pool: ThrowawayPool) -> list[Tenure]:
    async with PgLog.connect(pool.state.database_url, patience=PATIENCE_S) as opened:
        return await opened.shards()


async def recorded(pool: ThrowawayPool) -> bool:
    """
    Whether what a pool writes of itself when it starts is written: a machine is shown before that it came is in the log.
    """
    return any(tenure.frame for tenure in await heads(pool) if tenure.shard.startswith("collector"))


def frames_of_schedd(tenures: list[Tenure]) -> list[int]:
    return [tenure.frame for tenure in tenures if tenure.shard.startswith("schedd.")]


async def asked_of(pool: ThrowawayPool, before: list[Tenure]) -> list[Event]:
    """
    What was recorded since then that a pool does not record by itself: what earlier jobs used is charged each minute, and said in a
    cycle.
    """
    async with PgLog.connect(pool.state.database_url, patience=PATIENCE_S) as opened:
        assert [tenure.shard for tenure in before] == [tenure.shard for tenure in await opened.shards()]
        recorded = [
            decode(entry.data)
            for tenure in before
            async for frame in opened.read(tenure.shard, after=tenure.frame)
            for entry in frame.entries
        ]
    return [event for event in recorded if not isinstance(event, PrincipalCharged | CycleNegotiated)]


def pids(pool: ThrowawayPool) -> dict[str, tuple[int, int]]:
    return {daemon.name: (daemon.pid, daemon.starts) for daemon in pool.state.daemons}


def example(kind: inspect.Type, *, number: int = 1, text: str = "x") -> Any:  # noqa: C901 - a case for each kind
    """A value of a type, every field given."""

    def one(inner: inspect.Type) -> Any:
        return example(inner, number=number, text=text)

    match kind:
        case inspect.LiteralType(values=values):
            return values[0]
        case inspect.EnumType(cls=choices):
            return next(iter(choices)).value
        case (
            inspect.ListType(item_type=item, min_length=least)
            | inspect.VarTupleType(item_type=item, min_length=least)
        ):
            return [one(item)] * (least or 1)
        case inspect.TupleType(item_types=items):
            return [one(item) for item in items]
        case inspect.DictType(value_type=value):
            return {"Cmd": one(value)}
        case inspect.UnionType(types=types):
            return one(next(each for each in types if not isinstance(each, inspect.NoneType)))
        case inspect.StructType():
            fields = {field.encode_name: one(field.type) for field in kind.fields}
            if kind.array_like:
                return [*([] if kind.tag is None else [kind.tag]), *fields.values()]
            return fields if kind.tag_field is None else {kind.tag_field: kind.tag} | fields
        case inspect.StrType(pattern=str(pattern)) if not re.search(pattern, text):
            longest = 64 if kind.max_length is None else min(kind.max_length, 64)
            tries = ("0" * 64, "X" * longest, "0" * 8, "00:00:00:00:00:00")
            fits = (each for each in tries if len(each) <= longest and re.search(pattern, each))
            return next(fits, tries[1])
        case _:
            simple: dict[type[inspect.Type], Any] = {
                inspect.IntType: number,
                inspect.FloatType: number,
                inspect.StrType: text,
                inspect.BytesType: text.encode(),
                inspect.BoolType: True,
            }
            return simple[type(kind)]


def message(endpoint: Endpoint[Any, Any], *, number: int = 1, text: str = "x") -> bytes:
    return msgspec.msgpack.encode(example(inspect.type_info(endpoint.request), number=number, text=text))


def malformed(endpoint: Endpoint[Any, Any]) -> dict[str, bytes]:
    """What is no message of an endpoint, and why."""
    whole = message(endpoint)
    endpoint.decode_request(whole)  # or the truncated one would prove nothing
    noise = random.Random(f"{endpoint.role}.{endpoint.verb}").randbytes(200)
    wrong = {field.encode_name: {"a": [1, 2]} for field in msgspec.structs.fields(endpoint.request)}
    return {
        "noise": b"\xc1" + noise,
        "empty": b"",
        "text": b"hello, are you there?",
        "a number": msgspec.msgpack.encode(42),
        "a list": msgspec.msgpack.encode([[], None, 1.5]),
        "fields of the wrong type": msgspec.msgpack.encode(wrong or {"a": 1}),
        "truncated": whole[:-1],
        "half": whole[: len(whole) // 2],
        "more than one": whole + whole,
        "an array of four billion": b"\xdd\xff\xff\xff\xff",
        "nested without end": b"\x91" * 500_000,
        "text that is not UTF-8": msgspec.msgpack.encode("x").replace(b"x", b"\xff"),
    }


def refused(endpoint: Endpoint[Any, Any], data: bytes) -> str:
    """The code for nonsense, which is not even read if there is more of it than the endpoint takes."""
    return "too_large" if len(data) > endpoint.largest else "malformed"


async def test_a_malformed_message_is_refused(pool: ThrowawayPool, sender: Sender) -> None:
    """Every endpoint answers it with an error, nothing of it gets into the log, and no service ends."""
    before, running = await heads(pool), pids(pool)
    for endpoint in HERE:
        for what, data in malformed(endpoint).items():
            code = await sender.send(endpoint, data)
            assert refused(endpoint, data) == code, f"{endpoint}: {what}"
    assert [] == await asked_of(pool, before)
    assert running == pids(pool)


async def test_extra_elements_nested_without_end_end_nothing(pool: ThrowawayPool, sender: Sender) -> None:
    """What is skipped while a message is read may be as deep as somebody likes."""
    running = pids(pool)
    deep = b"\x91" * 500_000
    for endpoint in (schedd.QUERY_EVENTS, schedd.EXPLAIN):
        data = b"\x81" + msgspec.msgpack.encode("job") + b"\x93\x01\x00" + deep
        assert "malformed" == await sender.send(endpoint, data)
    for endpoint in HERE:
        data = b"\x81" + msgspec.msgpack.encode("unknown") + deep
        assert refused(endpoint, data) == await sender.send(endpoint, data), endpoint
    assert "malformed" == await sender.send(schedd.EXPLAIN, b"")
    assert running == pids(pool)


@pytest.mark.parametrize("number", [0, -1, -(2**63), 2**63 - 1, 2**64 - 1])
@pytest.mark.parametrize(
    "text",
    ["", "x", "../../etc/passwd", "\0\n\u202e%41.*.>", "(" * 20_000],
    ids=["empty", "name", "path", "signs", "deep"],
)
async def test_a_message_of_the_right_shape_ends_nothing(
    pool: ThrowawayPool, sender: Sender, number: int, text: str
) -> None:
    """
    Numbers, names and expressions at the edge of what can be said are answered, by services that live on.
    """
    running = pids(pool)
    for _ in range(2):  # the second time shows that the service that answered the first is still there
        for endpoint in (*FOR_PEOPLE, shadow.FETCH_INPUT):
            await sender.send(endpoint, message(endpoint, number=number, text=text))
    assert running == pids(pool)


async def test_an_id_belongs_to_one_command(pool: ThrowawayPool, sender: Sender) -> None:
    """It stands for nothing else: neither for another command's answer, nor for what the log cannot hold."""
    running = pids(pool)
    act = schedd.Act(id="one", action="hold", select=schedd.Select(clusters=[4711]))
    waits: Ad = {"Cmd": "/bin/true", "Iwd": "/", "Requirements": False}
    submit = schedd.Submit(id="one", ad=waits, columns=[], rows=[[]])
    for command in (schedd.ACT, act), (schedd.SUBMIT, submit):
        assert "" == await sender.send(command[0], msgspec.msgpack.encode(command[1]))
    before = await heads(pool)
    for bad in (
        "\0",
        "",
        "x" * 1_000_000,
        "a\nb",
        "\udcff".encode("utf-8", "surrogatepass").decode("latin1"),
    ):
        for endpoint, request in (schedd.ACT, act), (schedd.SUBMIT, submit):
            again = msgspec.structs.replace(request, id=bad)
            assert "malformed" == await sender.send(endpoint, msgspec.msgpack.encode(again)), bad[:9]
    assert running == pids(pool)
    assert frames_of_schedd(before) == frames_of_schedd(await heads(pool))


@pytest.mark.parametrize(
    "name", ["Cmd", "Iwd", "Args", "Environment", "In", "Out", "UserLog", "TransferInput"]
)
async def test_a_job_with_a_nul_is_refused(pool: ThrowawayPool, sender: Sender, name: str) -> None:
    """
    No file, argument or variable can have one, so no service downstream need be asked what it makes of it.
    """
    before = await heads(pool)
    good: dict[str, str] = {"Cmd": "/bin/true", "Iwd": "/"}
    shared = schedd.Submit(id=f"shared {name}", ad={**good, name: "a\0b"}, columns=[], rows=[[]])
    own = schedd.Submit(id=f"own {name}", ad=dict(good), columns=[name], rows=[["a\0b"]])
    for submit in shared, own:
        assert "unacceptable" == await sender.send(schedd.SUBMIT, msgspec.msgpack.encode(submit))
    assert frames_of_schedd(before) == frames_of_schedd(await heads(pool))


async def test_a_command_for_a_service_that_is_not_there(sender: Sender) -> None:
    """The asker learns at once that nobody answers."""
    with pytest.raises(NoResponderError):
        await sender.send(collector.QUERY_ADS, message(collector.QUERY_ADS), name="nobody")


class Intruder:
    """A person's own connection, and what the server said about it."""

    def __init__(self) -> None:
        self.client = NatsClient()
        self.said: list[str] = []
        self.heard: list[str] = []

    async def complain(self, error: Exception) -> None:
        self.said.append(str(error).lower())

    async def _settle(self) -> None:
        """
        The server answers in order, so a complaint is here before the pong; the first flush may overtake what we sent.
        """
        await self.client.flush()
        await self.client.flush()

    async def publish(self, subject: str) -> bool:
        """Whether the server let it pass."""
        before = len(self.said)
        await self.client.publish(subject, b"forged", reply=self.client.new_inbox())
        await self._settle()
        return not any("permissions violation for publish" in text for text in self.said[before:])

    async def listen(self, subject: str) -> bool:
        """Whether the server let it pass."""

        async def hear(message: Any) -> None:
            self.heard.append(message.subject)

        before = len(self.said)
        await self.client.subscribe(subject, cb=hear)  # pyright: ignore[reportUnknownMemberType]
        await self._settle()
        return not any("permissions violation for subscription" in text for text in self.said[before:])


@pytest_asyncio.fixture
async def intruder(pool: ThrowawayPool) -> AsyncIterator[Intruder]:
    if not selection.servers_are_ours():
        pytest.skip("who may do what on servers of somebody else is theirs to say")
    one = Intruder()
    await one.client.connect(
        pool.client.pool.nats_url,
        user_credentials=pool.client.pool.credentials,
        inbox_prefix=user(pool.client.pool.user).inbox,
        error_cb=one.complain,
    )
    try:
        yield one
    finally:
        await one.client.close()


async def test_a_person_speaks_for_nobody_else(pool: ThrowawayPool, intruder: Intruder) -> None:
    """The server stops events, worker reports, notices, ads, leases, and commands in the name of others."""
    before = await heads(pool)
    subjects = Subjects(pool.client.pool.pool)
    myself = user(pool.client.pool.user).token
    forged = [
        *(subjects.events(tenure.shard) for tenure in before),
        subjects.work("schedd", "anywhere"),
        subjects.notice("schedd", "schedd"),
        *(
            subjects.command(endpoint.role, "schedd", endpoint.verb, who)
            for endpoint in ENDPOINTS
            for who in (user("somebody").token, daemon("schedd").token, daemon("shadow").token)
        ),
        *(
            subjects.command(endpoint.role, "schedd", endpoint.verb, myself)
            for endpoint in ENDPOINTS
            if endpoint not in open_to(Caller.USER, Caller.ADMINISTRATOR)
        ),
        *(
            f"$KV.{bucket}.{key}"
            for bucket in (subjects.ads, subjects.private_ads, subjects.leases)
            for key in ("Machine.evil", "evil")
        ),
        f"{daemon('schedd').inbox}.x",
    ]
    assert [] == [subject for subject in forged if await intruder.publish(subject)]
    assert [] == await asked_of(pool, before)


async def test_a_person_reads_no_secrets(pool: ThrowawayPool, intruder: Intruder) -> None:
    """
    The server gives out neither the claim capabilities, nor what others ask and are answered, nor the streams.
    """
    subjects = Subjects(pool.client.pool.pool)
    private, work = f"KV_{subjects.private_ads}", subjects.work_stream
    asked = [
        f"{api}.{verb}"
        for api in (API, GUESTS_API)
        for stream in (private, work, f"KV_{subjects.leases}", subjects.event_stream("schedd.schedd"))
        for verb in (
            f"STREAM.INFO.{stream}",
            f"STREAM.MSG.GET.{stream}",
            f"DIRECT.GET.{stream}",
            f"DIRECT.GET.{stream}.$KV.{subjects.private_ads}.slot1",
            f"CONSUMER.CREATE.{stream}",
            f"CONSUMER.CREATE.{stream}.mine.$KV.{subjects.private_ads}.slot1",
            f"CONSUMER.DURABLE.CREATE.{stream}.mine",
            f"STREAM.DELETE.{stream}",
            f"STREAM.PURGE.{stream}",
            f"STREAM.SNAPSHOT.{stream}",
        )
    ]
    asked += ["$JS.API.STREAM.NAMES", "$JS.API.STREAM.LIST", "$JS.API.INFO", "$SYS.REQ.SERVER.PING.CONNZ"]
    assert [] == [subject for subject in asked if await intruder.publish(subject)]
    overheard = [
        ">",
        "*.>",
        f"{daemon('schedd').inbox}.>",
        f"$KV.{subjects.private_ads}.>",
        "$KV.>",
        subjects.work_all,
        subjects.commands_to("schedd"),
        subjects.commands_to("startd"),
        "$JS.>",
        "$SYS.>",
    ]
    assert [] == [subject for subject in overheard if await intruder.listen(subject)]
    await pool.client.jobs()
    await pool.client.ads()
    assert [] == intruder.heard


async def test_the_record_is_sound(pool: ThrowawayPool) -> None:
    """After all of this the audit finds nothing, and the pool runs jobs."""
    submitted = await pool.client.submit("executable = /bin/true\nqueue\n", cwd=pool.home.parent)
    status, out, err = await pool.kettle("wait", str(submitted.cluster))
    assert 0 == status, out + err
    audit = await pool.log_check()
    assert audit.clean, audit.said
