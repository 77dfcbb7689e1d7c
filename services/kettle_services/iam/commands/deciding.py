"""How a decision of the domain becomes an answer of the bus."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Final

from kettle.bus.ports import RefusedError
from kettle.eventsourcing.command_pipeline import Decision
from kettle_services.iam.domain.refusals import Denied
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.iam import Recorded
from kettle_wire.events import IdentityEvent

_BY_STATUS: Final = {
    400: RefusalCode.UNACCEPTABLE,
    404: RefusalCode.NOT_FOUND,
    409: RefusalCode.REFUSED,
    503: RefusalCode.UNAVAILABLE,
}


def recorded(changes: Sequence[tuple[str, IdentityEvent]]) -> Decision[Recorded]:
    """The decision to record these, and to say no more than where."""
    return Decision(lambda position: Recorded(position=position), changes)


@contextmanager
def refusing() -> Generator[None]:
    """Have what the domain denies refused over the bus, with the code that the bus has for it."""
    try:
        yield
    except Denied as refusal:
        code = _BY_STATUS.get(refusal.status, RefusalCode.DENIED)
        raise RefusedError(code, str(refusal)) from refusal
