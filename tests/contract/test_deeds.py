"""
Every command by which administrators change something, of every role, is told to the auditor of the service that is asked, and so
is everybody who may not send it.
"""

import re
from typing import Any, Final

import msgspec
import pytest
from msgspec import inspect

from kettle.bus.nats import NatsBus
from kettle.bus.ports import RefusedError, Served
from kettle.testing.bus_adapters import world as open_world
from kettle.testing.servers.locations import Place
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.catalogue import ENDPOINTS
from kettle_wire.commands.deeds import REPORT_DEED
from kettle_wire.endpoint import Caller, Endpoint, Repeat
from kettle_wire.identity import Identity, daemon, user

DEEDS: Final = [
    each for each in ENDPOINTS if Caller.ADMINISTRATOR in each.callers and each.repeat is not Repeat.QUERY
]
TEXTS: Final = ("x", "user:x", "0" * 64, "U" + "A" * 55, "x.x", "1234567", "10.0.0.0/8", "x@x", "https://x/")


def smallest(kind: inspect.Type) -> Any:
    """Of all values of a type, one of the smallest, as JSON has it."""
    match kind:
        case inspect.StructType():
            found = {each.encode_name: smallest(each.type) for each in kind.fields if each.required}
            return list(found.values()) if kind.array_like else found
        case inspect.StrType():
            pattern = re.compile(kind.pattern or "")
            return next(
                each for each in TEXTS if len(each) >= (kind.min_length or 0) and pattern.search(each)
            )
        case inspect.IntType() | inspect.FloatType():
            return 1
        case inspect.BoolType():
            return False
        case inspect.LiteralType():
            return kind.values[0]
        case inspect.ListType():
            return [smallest(kind.item_type)] * (kind.min_length or 0)
        case inspect.UnionType():
            return smallest(kind.types[0])
        case _:
            raise AssertionError(f"there is no smallest {kind}")


def sample(kind: type[msgspec.Struct]) -> msgspec.Struct:
    made: msgspec.Struct = msgspec.convert(smallest(inspect.type_info(kind)), kind)
    return made


class Told:
    """An auditor that remembers."""

    def __init__(self) -> None:
        self.acts: list[tuple[str, str, str]] = []
        self.denials: list[tuple[str, str, str, str]] = []

    def acted(
        self, endpoint: Endpoint[Any, Any], name: str, caller: Identity, request: msgspec.Struct
    ) -> None:
        assert sample(endpoint.request) == request
        self.acts.append((repr(endpoint), name, caller.name))

    def denied(
        self, endpoint: Endpoint[Any, Any], name: str, caller: Identity, refusal: RefusedError
    ) -> None:
        self.denials.append((repr(endpoint), name, caller.name, refusal.code))

    def note(self, who: str, action: str, where: str, sentence: str) -> None:
        raise AssertionError(f"{who} {action} {where} {sentence}")


@pytest.mark.parametrize("endpoint", DEEDS, ids=repr)
async def test_a_deed_is_told_once_it_is_done_and_a_denial_as_well(
    endpoint: Endpoint[Any, Any], real: Place
) -> None:
    """With the name of the service that was asked; what is refused for another reason is neither."""

    async def answer(request: msgspec.Struct, _caller: Identity) -> Any:
        if told.acts:
            raise RefusedError(RefusalCode.REFUSED, "not twice")
        return sample(endpoint.reply)

    told = Told()
    async with open_world("nats", real) as world:
        service = await world.connect(daemon(endpoint.role))
        assert isinstance(service, NatsBus)
        service.audit_by(told)
        served = Served(endpoint, answer, lambda: ["ada"])
        await service.serve(endpoint.role, "its.näme", [served], version="1.0.0")
        ada, bob = await world.connect(user("ada")), await world.connect(user("bob"))
        await ada.call(endpoint, "its.näme", sample(endpoint.request))
        with pytest.raises(RefusedError, match="not twice"):
            await ada.call(endpoint, "its.näme", sample(endpoint.request))
        with pytest.raises(RefusedError, match="bob is no administrator"):
            await bob.call(endpoint, "its.näme", sample(endpoint.request))
    assert [(repr(endpoint), "its.näme", "ada")] == told.acts
    assert [(repr(endpoint), "its.näme", "bob", "denied")] == told.denials


def test_every_service_may_report() -> None:
    """Who serves something that is for people or administrators has somebody to tell."""
    served = {each.role for each in ENDPOINTS if each.callers & {Caller.USER, Caller.ADMINISTRATOR}}
    assert served <= REPORT_DEED.callers
