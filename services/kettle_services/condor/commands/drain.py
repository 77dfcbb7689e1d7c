"""condor_drain."""

import os
import sys
import uuid
from typing import Final

import msgspec

from kettle.client.connections.condor_config import CondorConfig
from kettle_services.condor.arguments.grammar import Option, TypedOption, understood
from kettle_services.condor.arguments.jobs import checked
from kettle_services.condor.arguments.machines import startd_of
from kettle_services.condor.connections.requests import Asker
from kettle_services.condor.errors import ToolError, WordsError
from kettle_wire.commands.startd import CANCEL_DRAIN, DRAIN, CancelDrain, Drain

OPTIONS: Final = {
    "cancel": Option(),
    "check": Option(takes=1),
    "debug": Option(),
    "exit-on-completion": Option(),
    "fast": Option(),
    "graceful": Option(),
    "peaceful": Option(),
    "pool": Option(takes=1, also=("p",)),
    "quick": Option(),
    "reason": Option(takes=1),
    "reconfig-on-completion": Option(),
    "request-id": Option(takes=1),
    "restart-on-completion": Option(),
    "resume-on-completion": Option(),
    "start": Option(takes=1),
}
HELP: Final = {
    "condor_drain": """\
usage: condor_drain [options] MACHINE
       condor_drain -cancel [-request-id ID] MACHINE

Empty a machine: it takes no new jobs, and those that run are ended.  MACHINE is its name, or that of one of its slots: all
slots of the machine are drained.  Who may do this are the administrators that its startd names.

  -graceful              jobs have their retirement time, then their time to end (this is the default)
  -quick                 only their time to end
  -fast                  they are killed at once
  -reason TEXT           is shown in the ads of its slots
  -check EXPRESSION      only if it is true of all of its slots
  -start EXPRESSION      START while it is being emptied (false)
  -resume-on-completion  take work again when nothing runs any more
  -cancel                take work again; jobs that were told to end do end
  -request-id ID         with -cancel: only if this request drains it (DrainingRequestId of its slots)
  -pool P                of which pool
""",
}
_HOW: Final = frozenset({"graceful", "quick", "fast", "check", "start", "reason", "resume-on-completion"})
_INSTEAD: Final = {
    "exit-on-completion": "wait until it is empty, then condor_off",
    "peaceful": "-graceful ends jobs after the retirement time of the machine at the latest; condor_off -peaceful -daemon "
    "startd waits for them without end",
    "reconfig-on-completion": "wait until it is empty, then condor_reconfig",
    "restart-on-completion": "wait until it is empty, then condor_restart",
}


class _Wanted(msgspec.Struct):
    """What was typed."""

    drain: Drain
    machine: str = ""
    cancel: bool = False
    request: str = ""
    pool: str = ""


def run(_name: str, words: list[str]) -> int:
    """Do it."""
    wanted = _Wanted(Drain(id=uuid.uuid4().hex))
    for given in understood(words, OPTIONS):
        _take(wanted, given)
    if not wanted.machine:
        raise WordsError("which machine?  Write its name")
    if wanted.request and not wanted.cancel:
        raise WordsError("-request-id says which request is to be cancelled: it goes with -cancel")
    asker = Asker.of(CondorConfig(os.environ), pool=wanted.pool)
    startd = startd_of(asker, wanted.machine)
    if wanted.cancel:
        asker.ask(CANCEL_DRAIN, startd, CancelDrain(request=wanted.request))
        sys.stdout.write(f"Sent request to cancel draining on {startd}\n")
    else:
        asker.ask(DRAIN, startd, wanted.drain)
        sys.stdout.write(f"Sent request to drain {startd}\n")
    return 0


def _take(wanted: _Wanted, given: TypedOption) -> None:
    value = given.values[0] if given.values else ""
    match given.name:
        case "" if not wanted.machine:
            wanted.machine = value
        case "":
            raise WordsError(f"'{value}' is one machine too many")
        case how if how in _HOW:
            wanted.drain = _told(wanted.drain, how, value)
        case "cancel":
            wanted.cancel = True
        case "request-id" | "pool" as name:
            setattr(wanted, name.removesuffix("-id"), value)
        case "debug":
            pass
        case refused:
            raise ToolError(f"condor_drain: -{refused} is not carried out; {_INSTEAD[refused]}")


def _told(drain: Drain, option: str, value: str) -> Drain:
    """The request with one more field set."""
    replace = msgspec.structs.replace
    match option:
        case "check" | "start":
            return replace(drain, **{option: checked(value)})
        case "reason":
            return replace(drain, reason=value)
        case "resume-on-completion":
            return replace(drain, resume=True)
        case speed:
            return replace(drain, speed=speed)
