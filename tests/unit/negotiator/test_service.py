"""The negotiator's watches."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from typing import Any, cast

import msgspec
import pytest

from kettle.bus.ports import Bus, KeyChange, NoResponderError
from kettle.matchmaking.ad_limits import LONGEST, LONGEST_NAME, MOST
from kettle.runtime import Telemetry
from kettle.testing.patience import PATIENCE_S
from kettle_services.negotiator.accountant import Accounts
from kettle_services.negotiator.domain.accountant import Accountant, Standing
from kettle_services.negotiator.domain.cycle import Outcome
from kettle_services.negotiator.domain.pool import Pool
from kettle_services.negotiator.record import Record
from kettle_services.negotiator.service import Negotiator
from kettle_services.negotiator.settings import NegotiatorSettings
from kettle_wire.ads import Ad, Expr
from kettle_wire.ads.daemon import ResourceRequest, SlotSecret, SubmitterAd
from kettle_wire.commands.schedd import Matched
from kettle_wire.events import Match
from kettle_wire.subjects import Subjects, machine_key, slot_key, submitters_key

SLOT: Ad = {"Name": "s", "State": "Unclaimed", "PartitionableSlot": True, "Requirements": True}
AMOUNTS: Ad = {"Cpus": 1, "Memory": 1024, "Disk": 100_000}


class Buckets:
    """A bus that has nothing but these ads, and takes what is called on it."""

    def __init__(
        self, ads: dict[str, bytes], secrets: dict[str, bytes], owners: dict[str, bytes] | None = None
    ) -> None:
        self.ads, self.secrets, self._owners = ads, secrets, owners or {}
        self.calls: list[object] = []

    async def watch(self, bucket: str, keys: str = ">") -> AsyncIterator[KeyChange | None]:
        subjects = Subjects("p")
        held = {subjects.private_ads: self.secrets, subjects.machine_owners: self._owners}.get(
            bucket, self.ads
        )
        for key, value in held.items():
            if keys == ">" or key.startswith(keys.removesuffix(">")):
                yield KeyChange(key=key, value=value, revision=1)
        yield None

    async def call(self, endpoint: object, name: str, request: object, *, deadline: float) -> None:
        self.calls.append(request)


class Written:
    """A record that counts."""

    cycle = 0

    def __init__(self) -> None:
        self.outcomes: list[Outcome] = []
        self.recent: list[tuple[int, list[Match]]] = []

    async def write(self, outcome: Outcome, *, started: float, duration: float) -> None:
        self.outcomes.append(outcome)


class Unpaid:
    """Accounts of nobody."""

    accountant = Accountant()

    def observe(self) -> None:
        pass

    async def standings(self, now: float, names: Collection[str]) -> dict[str, Standing]:
        return self.accountant.standings(now, names)


def negotiator(bus: Buckets, record: Written, **settings: Any) -> Negotiator:
    return Negotiator(
        cast("Bus", bus),
        Subjects("p"),
        cast("Record", record),
        NegotiatorSettings(pool="p", **settings),
        Telemetry(),
        pool=Pool(),
        accounts=cast("Accounts", Unpaid()),
    )


async def told(service: Negotiator) -> None:
    for watch in (service.watch_owners, service.watch_slots, service.watch_secrets, service.watch_submitters):
        await watch()


def demand(cpus: int) -> SubmitterAd:
    return asking("ada", {"Requirements": Expr("true"), "RequestCpus": cpus})


def asking(name: str, job: Ad, *, count: int = 1, nodes: int = 1) -> SubmitterAd:
    requests = [ResourceRequest(autocluster=1, count=count, ad=job, nodes=nodes)]
    return SubmitterAd(name=name, schedd="ap", idle=1, running=0, held=0, requests=requests)


async def test_schedds_are_told_what_machines_ask_of_jobs() -> None:
    """
    Without a match: the attribute is missing in the requests, so there can be none yet. Once, and after a restart.
    """
    encode = msgspec.msgpack.encode
    start = {**SLOT, **AMOUNTS, "Requirements": Expr("START"), "Start": Expr("TARGET.IsShort =?= true")}
    bus = Buckets(
        {"Machine.s": encode(start), "Submitter.ada": encode(demand(1))},
        {"s": encode(SlotSecret(startd="m", capability="c"))},
    )
    service = negotiator(bus, Written(), interval=0.01, min_interval=0.01)
    await told(service)
    await _run(service, lambda: bool(bus.calls))
    assert [Matched(cycle=0, matches=[], significant=["isshort"])] == bus.calls

    bus.ads["Submitter.ada"] = encode(msgspec.structs.replace(demand(1), started=5))
    await told(service)
    await _run(service, lambda: len(bus.calls) > 1)
    assert 2 == len(bus.calls)


async def test_a_schedd_that_knows_what_machines_ask_is_not_told_with_each_match() -> None:
    """The names go with the first message that it takes; the matches after it go without."""
    encode = msgspec.msgpack.encode
    start = {**SLOT, **AMOUNTS, "Cpus": 8, "Requirements": Expr("TARGET.IsShort =!= false")}
    bus = Buckets(
        {"Machine.s": encode(start), "Submitter.a": encode(demand(1))},
        {"s": encode(SlotSecret(startd="m", capability="c"))},
    )
    record = Written()
    service = negotiator(bus, record, interval=0.01, min_interval=0.01)
    await told(service)
    await _run_until(service, lambda: len(record.outcomes) > 1)
    bus.ads["Submitter.b"] = encode(asking("bob", {"Requirements": Expr("true"), "RequestCpus": 1}))
    await service.watch_submitters()
    await _run_until(service, lambda: len(bus.calls) > 1)
    first, second = cast("list[Matched]", bus.calls)
    assert (["isshort"], ["ada"]) == (first.significant, [match.submitter for match in first.matches])
    assert not second.significant
    assert "bob" in {match.submitter for match in second.matches}


async def test_a_schedd_that_is_gone_is_not_called_in_every_cycle(caplog: pytest.LogCaptureFixture) -> None:
    """
    Its demand stays on the bus for a while: it is told once what machines ask, then not before a pause is over; started
    again it is told at once. It has not heard it yet, so matches bring it along.
    """

    class Gone(Buckets):
        async def call(self, endpoint: object, name: str, request: object, *, deadline: float) -> None:
            await super().call(endpoint, name, request, deadline=deadline)
            raise NoResponderError("nobody")

    encode = msgspec.msgpack.encode
    start = {**SLOT, **AMOUNTS, "Requirements": Expr("TARGET.IsShort")}
    bus, record = Gone({"Machine.s": encode(start), "Submitter.ada": encode(demand(1))}, {}), Written()
    service = negotiator(bus, record, interval=0.01, min_interval=0.01)
    await told(service)
    await _run_until(service, lambda: len(record.outcomes) > 3)
    assert 1 == len(bus.calls)
    assert 1 == len(caplog.records)

    bus.ads["Submitter.ada"] = encode(msgspec.structs.replace(demand(1), started=5))
    await told(service)
    await _run_until(service, lambda: len(record.outcomes) > 6)
    assert 2 == len(bus.calls)

    bus.ads["Machine.t"] = encode({**start, "Name": "t", "Requirements": True})
    bus.secrets["t"] = encode(SlotSecret(startd="m", capability="c"))
    await told(service)
    await _run_until(service, lambda: len(bus.calls) > 2)
    _, _, last = cast("list[Matched]", bus.calls)
    assert (["isshort"], ["t"]) == (last.significant, [match.slot for match in last.matches])


async def test_an_ad_that_cannot_be_read_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    """Its key is named in one warning, and matching goes on with the others."""
    encode = msgspec.msgpack.encode
    bus = Buckets(
        {
            "Machine.bad": b"\xc1",
            "Machine.odd": encode([1]),
            "Machine.good": encode({**SLOT, **AMOUNTS}),
            "Submitter.bad": encode({"name": 1}),
            "Submitter.ada": encode(demand(1)),
        },
        {"bad": b"", "good": encode(SlotSecret(startd="m", capability="c"))},
    )
    record = Written()
    service = negotiator(bus, record)
    with caplog.at_level(logging.WARNING):
        await told(service)
        await told(service)
    await _run(service, lambda: bool(bus.calls))

    named: Sequence[object] = [getattr(entry, "key", None) for entry in caplog.records]
    assert ["Machine.bad", "Machine.odd", "bad", "Submitter.bad"] == named
    assert 1 == len(bus.calls)


async def test_an_ad_that_is_too_large_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    """
    An expression or a number of attributes beyond what an ad may have is as good as no ad; the most that it may is read.
    """
    encode, good = msgspec.msgpack.encode, {**SLOT, **AMOUNTS}
    longest = Expr("true".ljust(LONGEST))
    longer = Expr("true".ljust(LONGEST + 1))
    many: Ad = {f"A{n}": n for n in range(MOST - len(good))}
    job: Ad = {"Requirements": longest, "RequestCpus": 1}
    bus = Buckets(
        {
            "Machine.long": encode({**good, "Name": "long", "Start": longer}),
            "Machine.wide": encode({**good, **many, "Name": "wide", "More": 1}),
            "Machine.most": encode({**good, **many, "Name": "most", "Requirements": longest}),
            "Submitter.long": encode(asking("long", {**job, "Rank": longer})),
            "Submitter.wide": encode(
                asking("wide", {**job, **many, "A": 1, "B": 2, "C": 3, "D": 4, "E": 5, "F": 6})
            ),
            "Submitter.name": encode(asking("." * (LONGEST_NAME + 1), job)),
            "Submitter.less": encode(asking("less", job, count=-1)),
            "Submitter.more": encode(asking("more", job, count=2**62)),
            "Submitter.none": encode(asking("none", job, nodes=0)),
            "Submitter.ada": encode(asking("ada", job)),
        },
        {name: encode(SlotSecret(startd="m", capability=name)) for name in ("long", "wide", "most")},
    )
    record = Written()
    service = negotiator(bus, record)
    with caplog.at_level(logging.WARNING):
        await told(service)
    await _run(service, lambda: bool(record.outcomes))

    refused = ("long", "wide", "name", "less", "more", "none")
    assert ["Machine.long", "Machine.wide", *(f"Submitter.{name}" for name in refused)] == [
        getattr(entry, "key", None) for entry in caplog.records
    ]
    assert [("ada", "most")] == [(match.submitter, match.slot) for match in record.outcomes[0].matches]


async def test_nothing_is_matched_before_all_ads_have_come() -> None:
    """
    Whichever of slots, secrets and submitters is missing, there is no cycle: what is in use is not known yet.
    """
    encode = msgspec.msgpack.encode
    bus = Buckets(
        {"Machine.good": encode({**SLOT, **AMOUNTS}), "Submitter.ada": encode(demand(1))},
        {"good": encode(SlotSecret(startd="m", capability="c"))},
    )
    for last in range(3):
        record = Written()
        service = negotiator(bus, record, min_interval=0.001)
        watches = [service.watch_slots, service.watch_secrets, service.watch_submitters]
        late = watches.pop(last)
        await service.watch_owners()
        running = asyncio.create_task(service.run())
        for watch in watches:
            await watch()
        for _ in range(10):
            await asyncio.sleep(0)
        assert [] == record.outcomes
        await late()
        async with asyncio.timeout(PATIENCE_S):
            while not record.outcomes:
                await asyncio.sleep(0)
        assert ["ada"] == [match.submitter for match in record.outcomes[0].matches]
        running.cancel()


@pytest.mark.parametrize(("owner", "matched"), [("ada", ["ada"]), ("bob", [])])
async def test_a_machine_of_one_person_takes_nobody_elses_jobs(owner: str, matched: list[str]) -> None:
    """As iam says, whatever the machine's ad says."""
    encode = msgspec.msgpack.encode
    bus = Buckets(
        {
            machine_key("m", "good@m"): encode({**SLOT, **AMOUNTS, "Name": "good@m"}),
            "Submitter.ada": encode(asking("ada", {"Requirements": True, "Owner": "ada", "RequestCpus": 1})),
        },
        {slot_key("m", "good@m"): encode(SlotSecret(startd="m", capability="c"))},
        {"m": owner.encode()},
    )
    record = Written()
    service = negotiator(bus, record, min_interval=0.001)
    await told(service)
    await _run(service, lambda: bool(record.outcomes))
    assert matched == [match.submitter for outcome in record.outcomes for match in outcome.matches]


async def test_what_cannot_be_matched_costs_no_more_cycles() -> None:
    """As long as nothing new is said, the next cycle comes with the interval."""
    encode = msgspec.msgpack.encode
    bus = Buckets(
        {"Machine.good": encode({**SLOT, **AMOUNTS}), "Submitter.ada": encode(demand(64))},
        {"good": encode(SlotSecret(startd="m", capability="c"))},
    )
    record = Written()
    service = negotiator(bus, record, min_interval=0.001)
    await told(service)
    running = asyncio.create_task(_run(service, lambda: bool(record.outcomes), 0.3))
    for _ in range(20):
        await asyncio.sleep(0.01)
        await told(service)
    await running

    assert 1 == len(record.outcomes)


async def test_an_ad_of_a_visitor_is_about_its_own_guests(caplog: pytest.LogCaptureFixture) -> None:
    """Under the visitor's key nobody else's jobs are asked for: such an ad is left out with a warning."""
    visitor, encode = "ap@physics", msgspec.msgpack.encode
    ads = {"Machine.good": encode({**SLOT, **AMOUNTS})}
    for name, schedd in (("ada", visitor), ("ada@physics", "ap"), ("ada@physics", visitor)):
        ad = msgspec.structs.replace(asking(name, {"Requirements": Expr("true")}), schedd=schedd)
        ads[submitters_key(visitor, f"{name} {schedd}")] = encode(ad)
    bus = Buckets(ads, {"good": encode(SlotSecret(startd="m", capability="c"))})
    record = Written()
    service = negotiator(bus, record)
    with caplog.at_level(logging.WARNING):
        await told(service)
    await _run(service, lambda: bool(record.outcomes))
    assert 2 == len(caplog.records)
    assert [("ada@physics", visitor)] == [(m.submitter, m.schedd) for m in record.outcomes[0].matches]


async def test_a_schedd_that_hangs_keeps_nobody_else_waiting() -> None:
    """
    It does not take its matches; the next cycles come all the same, and what they give is taken by others.
    """

    class Hanging(Buckets):
        taken = asyncio.Event()

        async def call(self, endpoint: object, name: str, request: object, *, deadline: float) -> None:
            if name == "slow":
                await asyncio.Event().wait()
            self.taken.set()

    encode = msgspec.msgpack.encode
    slow = msgspec.structs.replace(asking("ada", {"Requirements": Expr("true")}), schedd="slow")
    bus = Hanging(
        {"Machine.good": encode({**SLOT, **AMOUNTS, "Cpus": 8}), "Submitter.a": encode(slow)},
        {"good": encode(SlotSecret(startd="m", capability="c"))},
    )
    record = Written()
    service = negotiator(bus, record)
    await told(service)
    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(service.run())
        while not record.outcomes:
            await asyncio.sleep(0.01)
        bus.ads["Submitter.b"] = encode(asking("bob", {"Requirements": Expr("true")}))
        await service.watch_submitters()
        await bus.taken.wait()
        running.cancel()


async def _run(service: Negotiator, reached: Callable[[], bool], seconds: float = 0.1) -> None:
    """Until something is reached, and for some time more, in which nothing else may happen."""
    running = asyncio.create_task(service.run())
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not reached():
                await asyncio.sleep(0.005)
        await asyncio.sleep(seconds)
    finally:
        running.cancel()


async def _run_until(service: Negotiator, reached: Callable[[], bool]) -> None:
    await _run(service, reached, 0.0)
