"""A provisioner in front of a provider that refuses, is late, loses answers, and has many machines."""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

import pytest

from kettle.bus.ports import BusUnavailableError, RefusedError
from kettle.retry.deadline import Deadline
from kettle.runtime.measurements import Measurements
from kettle.runtime.telemetry import MeasuringTelemetry, Telemetry
from kettle_services.provisioner.hosted import Hosted
from kettle_services.provisioner.join_tokens import JoinTokens
from kettle_services.provisioner.pace import NoTurnError, Pace
from kettle_services.provisioner.port import Found, InDoubtError, ProviderError, Room, UnavailableError
from kettle_services.provisioner.service import Provisioner
from kettle_wire.bootstrap import Bootstrap
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.iam import CreateJoinToken, JoinTokenMade
from kettle_wire.commands.provisioner import (
    AskAboutOffers,
    Created,
    CreateMachines,
    FetchConsole,
    FindMachines,
    RemoveMachines,
)
from kettle_wire.endpoint import Position
from kettle_wire.examination import Examination, Notices
from kettle_wire.identity import daemon
from kettle_wire.leases import ErrorClass, MachineFound, MachineState, Order
from kettle_wire.worker_pools import Offer

SCALER: Final = daemon("scaler")
OFFER: Final = Offer(
    name="small",
    provider="cloud",
    cpus=2,
    memory=1000,
    start="RequestCpus > 1",
    attributes={"Site": '"north"'},
    administrators=["eve"],
    examination=Examination(containers=True),
    notices=Notices(file="/run/maintenance"),
)


class Cloud:
    """A provider that does as it is told, by the name of the lease."""

    visibility = 7.0

    def __init__(self) -> None:
        self.told: list[Bootstrap] = []
        self.removed: list[str] = []
        self.closed = False
        self.error: Exception | None = None

    async def check(self, offer: Offer) -> Sequence[str]:
        return [f"offer {offer.name}: no such flavour"] if offer.flavour else []

    async def create(self, order: Order, bootstrap: Bootstrap) -> str:
        self.told.append(bootstrap)
        match order.lease:
            case "late":
                await asyncio.Event().wait()
            case "lost":
                raise InDoubtError("the connection was reset")
            case "full":
                raise ProviderError(ErrorClass.CAPACITY, "InsufficientInstanceCapacity", retry_after=30.0)
            case _:
                pass
        return f"i-{order.lease}"

    async def find(self) -> Found:
        if self.error is not None:
            raise self.error
        machines = [MachineFound(handle=f"i-{n}", state=MachineState.RUNNING) for n in range(1000)]
        return Found(machines=machines, complete=False)

    async def get(self, handle: str) -> MachineFound:
        return MachineFound(handle=handle, state=MachineState.STOPPING)

    async def delete(self, handle: str) -> None:
        self.removed.append(handle)
        if handle == "i-busy":
            raise UnavailableError("409: it is being made")

    async def room(self) -> Room:
        return Room()

    async def console(self, handle: str) -> str:
        return f"{handle} panics, told kettle-join-1.t1.the-secret_-9.ab, and stops"

    async def close(self) -> None:
        self.closed = True


class Iam:
    """Gives join tokens, or does not answer."""

    payload_limit = 1 << 20

    def __init__(self) -> None:
        self.asked: list[CreateJoinToken] = []
        self.away = False
        self.refuses: RefusalCode | None = None

    async def call(self, endpoint: Any, name: str, request: Any, *, deadline: float = 5.0) -> Any:
        del endpoint, name, deadline
        if self.away:
            raise BusUnavailableError("the bus is away")
        if self.refuses is not None:
            raise RefusedError(self.refuses, "no")
        self.asked.append(request)
        position = Position("identity", 1)
        return JoinTokenMade(token="t1", pin="ab", url="http://iam", expires=0.0, position=position)


def provisioner(
    cloud: Cloud, iam: Iam, telemetry: Telemetry | None = None, pace: Pace | None = None
) -> Provisioner:
    hosted = {"cloud": Hosted("cloud", "ec2", pace or Pace(at_once=8, rate=1000.0), cloud)}
    tokens = JoinTokens(iam, "iam", "here")
    return Provisioner(
        hosted, tokens, call_deadline=0.2, secret=lambda: "the-secret", telemetry=telemetry or Telemetry()
    )


async def created(asked: Provisioner, *leases: str, attempt: int = 1) -> list[Created]:
    orders = [
        Order(
            lease=each,
            attempt=attempt,
            offer=OFFER,
            life=600.0,
            group="physics",
            start="true",
            whole=True,
        )
        for each in leases
    ]
    request = CreateMachines(id=f"{leases[0]}.{attempt}", provider="cloud", orders=orders)
    return (await asked.create(request, SCALER)).created


async def test_each_order_has_its_own_answer() -> None:
    """
    One that is made, refused, lost or late says nothing about the others; late and lost are no refusals.
    """
    answers = await created(provisioner(Cloud(), Iam()), "good", "full", "lost", "late")
    assert ["i-good", "", "", ""] == [each.handle for each in answers]
    refused = answers[1].trouble
    assert refused is not None
    assert (ErrorClass.CAPACITY, 30.0) == (refused.error, refused.retry_after)
    assert [None, None] == [each.trouble for each in answers[2:]]
    assert "the connection was reset" == answers[2].words
    assert "did not answer within" in answers[3].words


async def test_calls_of_providers_are_measured_by_how_they_end() -> None:
    """
    Of four orders one is done and one refused, and two may have been done; a list that does not come is unknown as well; what its
    provider is set up for is told without a call.
    """
    measurements, cloud = Measurements(), Cloud()
    asked = provisioner(cloud, Iam(), MeasuringTelemetry(measurements))
    await created(asked, "good", "full", "lost", "late")
    cloud.error = UnavailableError("away")
    await asked.find(FindMachines(provider="cloud"), SCALER)
    families = {each.metric.name: each for each in await measurements.families()}
    calls = families["kettle.provisioner.call.duration"].buckets
    assert {
        ("cloud", "create", "done"): 1,
        ("cloud", "create", "refused"): 1,
        ("cloud", "create", "unknown"): 2,
        ("cloud", "find", "unknown"): 1,
    } == {labels: each.count for labels, each in calls.items()}
    assert {("cloud",): 1.0} == families["kettle.provisioner.usable"].values
    assert {("cloud",): 1000.0} == families["kettle.provisioner.rate"].values


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (RefusalCode.REFUSED, ErrorClass.REQUEST),
        (RefusalCode.UNACCEPTABLE, ErrorClass.REQUEST),
        (RefusalCode.UNAVAILABLE, ErrorClass.TRANSIENT),
        (RefusalCode.DENIED, ErrorClass.CONFIG),
    ],
)
async def test_a_refusal_of_iam_is_of_what_it_concerns(code: RefusalCode, kind: ErrorClass) -> None:
    """A name that is taken closes no provider: only one who may not ask at all has his closed."""
    cloud, iam = Cloud(), Iam()
    iam.refuses = code
    [answer] = await created(provisioner(cloud, iam), "good")
    assert answer.trouble is not None
    assert (kind, []) == (answer.trouble.error, cloud.told)


async def test_an_order_is_carried_out_once() -> None:
    """
    An attempt that comes again makes nothing, and nobody claims to know what became of it; the next attempt is another order.
    """
    cloud = Cloud()
    asked = provisioner(cloud, Iam())
    await created(asked, "good")
    [again] = await created(asked, "good")
    assert ("", None) == (again.handle, again.trouble)
    assert 1 == len(cloud.told)
    await created(asked, "good", attempt=2)
    assert 2 == len(cloud.told)


async def test_a_machine_is_told_what_was_planned_with() -> None:
    """
    Its slot is that of the offer, with what the offer says of its administrators, its examination and notices; its token admits it
    alone, once, for as long as it lives, and for its group.
    """
    cloud, iam = Cloud(), Iam()
    await created(provisioner(cloud, iam), "good")
    [told], [asked] = cloud.told, iam.asked
    assert "kettle-join-1.t1.the-secret.ab" == told.token
    assert ("good", 1) == (asked.machine, asked.max_uses)
    assert asked.life >= told.life == 600.0
    assert told.settings == {
        "num_cpus": 2,
        "memory": 1000,
        "start": "(RequestCpus > 1) && (true)",
        "modify_request_expr": {"cpus": "2", "memory": "1000"},
        "administrators": ["eve"],
        "attributes": {"Site": "north"},
    }
    assert (OFFER.examination, OFFER.notices) == (told.examination, told.notices)
    assert ("", "physics") == (asked.owner, asked.group)


async def test_without_a_token_nothing_is_asked_of_a_provider() -> None:
    """While iam is away no machine is made, which is certain."""
    cloud, iam = Cloud(), Iam()
    iam.away = True
    [answer] = await created(provisioner(cloud, iam), "good")
    assert answer.trouble is not None
    assert ErrorClass.TRANSIENT is answer.trouble.error
    assert [] == cloud.told


async def test_a_list_says_whether_it_is_all_or_why_there_is_none() -> None:
    """An incomplete list stays one; a provider that does not answer, or not to us, has no list."""
    cloud = Cloud()
    asked = provisioner(cloud, Iam())
    found = await asked.find(FindMachines(provider="cloud"), SCALER)
    assert (1000, False, 7.0, None) == (len(found.machines), found.complete, found.visibility, found.trouble)
    for error, class_ in (
        (UnavailableError("away"), None),
        (ProviderError(ErrorClass.AUTH, "who?"), ErrorClass.AUTH),
    ):
        cloud.error = error
        found = await asked.find(FindMachines(provider="cloud"), SCALER)
        assert found.trouble is not None
        assert (class_, []) == (found.trouble.error, found.machines)


async def test_a_removal_tells_what_the_machine_wrote_and_how_it_is() -> None:
    """
    That one cannot be removed now does not keep the others; none is gone because it was asked to go; a token that was shown is not kept.
    """
    request = RemoveMachines(provider="cloud", handles=["i-1", "i-busy"], console=True)
    done = (await provisioner(Cloud(), Iam()).remove(request, SCALER)).machines
    wrote = [f"{handle} panics, told ***, and stops" for handle in ("i-1", "i-busy")]
    assert wrote == [each.console for each in done]
    console = await provisioner(Cloud(), Iam()).console(FetchConsole(provider="cloud", handle="i-1"), SCALER)
    assert wrote[0] == console.text
    machine, trouble = done[0].machine, done[1].trouble
    assert machine is not None
    assert MachineState.STOPPING is machine.state
    assert trouble is not None
    assert "409" in trouble.words


async def test_a_provider_that_has_too_many_calls_gets_fewer() -> None:
    """Its rate is halved each time that it says so, and grows again with calls that it takes."""
    pace = Pace(at_once=1, rate=1000.0)
    pace.slower()
    pace.slower()
    assert pytest.approx(250.0) == pace.rate
    for _ in range(100):
        async with pace.turn(Deadline(60.0)):
            pass
    assert pytest.approx(1000.0) == pace.rate


async def test_an_order_whose_turn_comes_too_late_is_not_carried_out() -> None:
    """
    Nothing was asked, which is certain: it is deferred, and no machine is made of which nobody knows. It is no word of the provider,
    which gets no fewer calls for it, and who gives up takes no time of others.
    """
    cloud, pace = Cloud(), Pace(at_once=8, rate=2.0, clock=lambda: 0.0)
    pace.slower()
    first, *others = await created(provisioner(cloud, Iam(), pace=pace), "good", "b", "c", "d")
    assert ("i-good", 1) == (first.handle, len(cloud.told))
    troubles = [each.trouble for each in others if each.trouble is not None]
    assert [ErrorClass.RATE] * 3 == [each.error for each in troubles]
    assert pytest.approx([1.0] * 3, rel=0.1) == [each.retry_after for each in troubles]
    assert pytest.approx(1.0, rel=0.1) == pace.rate


async def test_a_question_whose_turn_comes_too_late_is_not_asked() -> None:
    """Neither is it answered."""
    cloud, pace = Cloud(), Pace(at_once=8, rate=1.0, clock=lambda: 0.0)
    asked = provisioner(cloud, Iam(), pace=pace)
    request = RemoveMachines(provider="cloud", handles=["i-1", "i-2"])
    done = (await asked.remove(request, SCALER)).machines
    assert ["i-1"] == cloud.removed
    assert [ErrorClass.RATE, ErrorClass.RATE] == [each.trouble and each.trouble.error for each in done]


async def test_a_turn_is_waited_for_until_the_deadline() -> None:
    """Also where too many are asked at the same time, and where the time was over at the beginning."""
    pace, began = Pace(at_once=1, rate=1000.0), 0
    async with pace.turn(Deadline(60.0)):
        with pytest.raises(NoTurnError):
            async with pace.turn(Deadline(0.0)):
                began += 1
    with pytest.raises(NoTurnError):
        async with pace.turn(Deadline(0.0)):
            began += 1
    async with pace.turn(Deadline(60.0)):
        began += 1
    assert 1 == began


async def test_a_provider_that_is_not_set_up_is_a_fault_of_the_settings() -> None:
    """Its offers are wrong, and nothing waits for its list of machines: the answer says what to add."""
    asked = provisioner(Cloud(), Iam())
    found = await asked.find(FindMachines(provider="moon"), SCALER)
    checked = await asked.check(AskAboutOffers(provider="moon", offers=[OFFER]), SCALER)
    assert found.trouble == checked.trouble
    assert found.trouble is not None
    assert ErrorClass.CONFIG is found.trouble.error
    assert "[provisioner.providers.moon], or name one of cloud" in found.trouble.words
