"""
Draws `docs/explanation/slot-states.svg`: what becomes of the slot of a startd, as its rules say.

`docs/generate.py` writes it; by itself this module only makes its text.
There is no table of them: every rule is tried on a machine in every state that others have led to, and what comes of it is drawn.
Where a state stands and how an arrow goes is said here.
"""

from collections.abc import Callable, Mapping
from typing import Final, Literal

from kettle.schema_generation.state_diagrams import Frame, Route, StateBox, state_diagram
from kettle_services.startd.domain.claims import activation, preemption, requests
from kettle_services.startd.domain.policy import draining
from kettle_services.startd.domain.slots.resources import Resources
from kettle_services.startd.domain.slots.slot import Slot
from kettle_services.startd.domain.state.changes import Change, StarterConnected
from kettle_services.startd.domain.state.claim import Claim, DrainInForce, Now, Speed, StopOrder
from kettle_services.startd.domain.state.machine import Facts, Machine
from kettle_services.startd.domain.state.policy_expressions import DEFAULTS, PolicyExpressions
from kettle_services.startd.domain.state.slot_transitions import state_of, step
from kettle_wire.attempts import AttemptResult, Ending, ExitRecord
from kettle_wire.commands.startd import Activation, ClaimKey, Deactivation, RequestClaims, Suspension
from kettle_wire.jobs import JobId
from kettle_wire.worker_reports import FinalReport, Report

_TOTAL: Final = Resources(cpus=1, memory=100, disk=1000)
_NOW: Final = Now(clock=10.0, time=10.0)
_LATE: Final = Now(clock=1e6, time=1e6)
_JOB: Final = JobId(1, 0)
_AD: Final = {"Requirements": True, "RequestMemory": 1, "RequestDisk": 1}
_ENDING: Final = Ending(code=1000, reason="r")
"""Whatever the reason is, the slot goes the same way."""
NONE: Final = "Unclaimed"
WAITS: Final = "waits for others"
Rule = Callable[[Machine], list[Change]]


class _Says:
    """A policy with these answers; the rest is the default."""

    def __init__(self, *true: str, **seconds: float) -> None:
        self._true = {"WANT_VACATE", *true}
        self._seconds = seconds

    def holds(self, name: str) -> bool:
        return name in self._true

    def refuses(self, name: str) -> bool:
        return f"not {name}" in self._true

    def seconds(self, name: str) -> float:
        return self._seconds.get(name, float(DEFAULTS[name]))

    def hold_reason(self) -> tuple[str, int]:
        return "", 0


def _policy(*true: str, now: Now = _NOW) -> Rule:
    said = _Says(*true, MaxJobRetirementTime=1e5, MachineMaxVacateTime=1e5)
    return lambda machine: [change for claim in machine.claims.values() for change in step(claim, said, now)]


def _request(machine: Machine) -> list[Change]:
    """Two schedds, of which the machine likes the second better."""
    [slot] = machine.facts.slots
    first = RequestClaims(
        schedd="s", slot=machine.facts.slot_name(slot.number), capability="right", submitter="ann", job=_AD,
        claims=[ClaimKey("a", "s")], lease=60.0,
    )  # fmt: skip
    _, changes = requests.request_claims(machine, first, _NOW)
    return changes


def _outrank(machine: Machine) -> list[Change]:
    """Another job comes, which the machine likes better."""
    current = machine.claims.get("a")
    if current is None:
        return []
    command = RequestClaims(
        schedd="s", slot=machine.facts.name_of(current), capability=preemption.capability(machine, current),
        submitter="bob", job={**_AD, "Liking": 1}, claims=[ClaimKey("b", "s")], lease=60.0,
    )  # fmt: skip
    _, changes = requests.request_claims(machine, command, _NOW)
    return changes


def _activate(machine: Machine) -> list[Change]:
    if (claim := next(iter(machine.claims.values()), None)) is None:
        return []
    what = Activation(key=claim.key, job=_JOB, attempt=1, ad=_AD, inputs=[], shadow="s")
    _, changes = activation.activate(machine, what, _NOW)
    return [*changes, StarterConnected(claim.key.claim, 1, 1)] if changes else []


def _report(machine: Machine) -> list[Change]:
    """The job's final report is on disk."""
    return [
        change
        for claim in machine.claims.values()
        for change in activation.over(
            machine,
            Report(
                claim=claim.key.claim, attempt=1, sequence=claim.sequence + 1, job=_JOB,
                body=FinalReport(result=AttemptResult(exit=ExitRecord(code=0))),
            ),
            _NOW,
        )
    ]  # fmt: skip


def _deactivate(*, hard: bool) -> Rule:
    return lambda machine: [
        change
        for claim in machine.claims.values()
        for change in activation.deactivate(
            machine, Deactivation(key=claim.key, job=_JOB, attempt=1, ending=_ENDING, hard=hard), _NOW
        )
    ]


def _by_owner(*, suspended: bool) -> Rule:
    def rule(machine: Machine) -> list[Change]:
        return [
            change
            for claim in machine.claims.values()
            if claim.attempt is not None and claim.attempt.still != suspended
            for change in activation.suspend(
                machine,
                Suspension(
                    key=claim.key, job=_JOB, attempt=1, suspended=suspended, number=claim.attempt.ordered + 1
                ),
                _NOW,
            )
        ]

    return rule


def _drain(speed: Speed) -> Rule:
    def rule(machine: Machine) -> list[Change]:
        try:
            return draining.begin(machine, DrainInForce(id=speed, speed=speed, at=0.0), "", _NOW)
        except draining.DrainRefused:
            return []

    return rule


def _undrain(machine: Machine) -> list[Change]:
    return [] if machine.drain is None else draining.cancel(machine, "", _NOW)


def _release(*, waiting: bool) -> Rule:
    def rule(machine: Machine) -> list[Change]:
        among = machine.waiting if waiting else machine.claims
        return requests.release(machine, [claim.key for claim in among.values()], "r", _NOW)

    return rule


RULES: Final[Mapping[str, Rule]] = {
    "requested": _request,
    "better job": _outrank,
    "activated": _activate,
    "report stored": _report,
    "deactivated": _deactivate(hard=False),
    "deactivated fast": _deactivate(hard=True),
    "released": _release(waiting=False),
    "withdrawn": _release(waiting=True),
    "lease over": lambda machine: requests.expire(machine, _LATE),
    "suspended by its owner": _by_owner(suspended=True),
    "continued by its owner": _by_owner(suspended=False),
    "SUSPEND": _policy("WANT_SUSPEND", "SUSPEND"),
    "CONTINUE": _policy("CONTINUE"),
    "PREEMPT": _policy("PREEMPT"),
    "time over": _policy(now=_LATE),
    "KILL": _policy("KILL"),
    "not START": _policy("not START"),
    "drained": _drain("graceful"),
    "drained quickly": _drain("quick"),
    "drained fast": _drain("fast"),
    "drain cancelled": _undrain,
    "shut down": lambda machine: requests.shut_down(machine, _NOW, hard=True),
}
"""What can happen to a machine with one slot."""


def _states(machine: Machine) -> dict[str, str]:
    """Claim -> where it is."""
    waiting = dict.fromkeys(machine.waiting, WAITS)
    return waiting | {name: "/".join(state_of(claim)) for name, claim in machine.claims.items()}


def _bits(claim: Claim) -> tuple[object, ...]:
    """A claim as far as rules look at it."""
    attempt = claim.attempt
    ended = (bool(claim.ending), claim.then is not None, tuple(claim.after))
    if attempt is None:
        return ended
    stop: StopOrder | None = attempt.stop
    return (
        *ended,
        stop is not None,
        stop is not None and stop.hard,
        attempt.suspended is not None,
        attempt.still,
    )


def _value(machine: Machine) -> object:
    """A machine as far as rules look at it."""
    claims = {name: _bits(claim) for name, claim in (*machine.claims.items(), *machine.waiting.items())}
    return (
        tuple(sorted(_states(machine).items())),
        tuple(sorted(claims.items())),
        machine.drain.speed if machine.drain is not None else "",
    )


def explore() -> dict[tuple[str, str], list[str]]:
    """From which state of a claim to which other one what leads, from all that the rules lead to."""
    policy = PolicyExpressions({"RANK": "TARGET.Liking ?: 0", "MaxJobRetirementTime": "100000"})
    slot = Slot(number=1, type=1, partitionable=False, total=_TOTAL)
    facts = Facts(name="m", total=_TOTAL, detected=_TOTAL, slots=(slot,), policy=policy)
    first = Machine(facts, capability="right")
    met, left, found = {_value(first)}, [first], dict[tuple[str, str], list[str]]()
    while left:
        machine = left.pop()
        for word, rule in RULES.items():
            after = machine.copy()
            for change in rule(machine):
                after.apply(change)
            before, then = _states(machine), _states(after)
            for name in sorted(before.keys() | then.keys()):
                edge = before.get(name, NONE), then.get(name, NONE)
                words = found.setdefault(edge, [])
                if word not in words:
                    words.append(word)
            if (value := _value(after)) not in met:
                met.add(value)
                left.append(after)
    return {edge: words for edge, words in found.items() if edge[0] != edge[1]}


# -- the picture -------------------------------------------------------------------------------------------------------

_SIZE: Final = (1180, 720)
_GROUP: Final = ("Claimed/Busy", "Claimed/Suspended", "Claimed/Retiring", "Claimed/Cleaning")
_FRAME: Final = Frame(480, 104, 400, 520, "an attempt lives")
_STORED: Final = "report stored"
_PLACES: Final[Mapping[str, tuple[int, int]]] = {
    NONE: (120, 360),
    WAITS: (120, 580),
    "Claimed/Idle": (360, 360),
    "Claimed/Busy": (580, 360),
    "Claimed/Suspended": (580, 180),
    "Claimed/Retiring": (790, 260),
    "Claimed/Cleaning": (580, 580),
    "Preempting/Vacating": (1060, 260),
    "Preempting/Killing": (1060, 580),
}
_ROUTES: Final[Mapping[tuple[str, str], Route]] = {
    (NONE, "Claimed/Idle"): ("M190 352 H288", (240, 324), "middle"),
    ("Claimed/Idle", NONE): ("M290 372 H192", (236, 452), "start"),
    ("Claimed/Suspended", "Preempting/Vacating"): ("M650 190 C800 200 900 220 988 248", (860, 196), "start"),
    ("Claimed/Suspended", "Preempting/Killing"): ("M640 202 C800 330 900 470 990 562", (800, 400), "start"),
    (NONE, WAITS): ("M105 382 V558", (98, 480), "end"),
    (WAITS, NONE): ("M135 560 V382", (142, 530), "start"),
    ("Claimed/Idle", "Claimed/Busy"): ("M430 360 H508", (470, 352), "middle"),
    ("Claimed/Busy", "Claimed/Suspended"): ("M565 340 V202", (472, 262), "end"),
    ("Claimed/Suspended", "Claimed/Busy"): ("M590 200 V338", (596, 282), "start"),
    ("Claimed/Busy", "Claimed/Retiring"): ("M650 366 C740 366 780 340 790 282", (764, 352), "start"),
    ("Claimed/Retiring", "Claimed/Busy"): ("M730 280 C710 320 690 340 652 352", (720, 316), "start"),
    ("Claimed/Suspended", "Claimed/Retiring"): ("M650 172 C740 172 780 190 790 238", (744, 160), "start"),
    ("Claimed/Retiring", "Claimed/Suspended"): ("M730 240 C710 215 690 200 652 188", (640, 222), "start"),
    ("Claimed/Busy", "Claimed/Cleaning"): ("M580 380 V558", (588, 470), "start"),
    ("Claimed/Suspended", "Claimed/Cleaning"): ("M510 190 C470 300 470 480 520 558", (474, 520), "end"),
    ("Claimed/Retiring", "Preempting/Vacating"): ("M860 260 H988", (924, 230), "middle"),
    ("Claimed/Retiring", "Preempting/Killing"): ("M840 280 C900 380 960 500 1010 558", (880, 420), "start"),
    ("frame", "Preempting/Vacating"): ("M880 150 C960 150 1020 180 1050 238", (960, 140), "start"),
    ("frame", "Preempting/Killing"): ("M880 590 H988", (934, 610), "middle"),
    ("Claimed/Cleaning", "Preempting/Vacating"): ("M650 572 C820 560 960 400 1030 282", (760, 500), "start"),
    ("Claimed/Cleaning", "Preempting/Killing"): ("M650 590 C760 690 900 690 1010 602", (770, 680), "middle"),
    ("Preempting/Vacating", "Preempting/Killing"): ("M1060 280 V558", (1070, 400), "start"),
}


def slots_picture() -> str:
    """How a slot gets from state to state."""
    found = {edge: [word for word in words if word != _STORED] for edge, words in explore().items()}
    stored = [edge for edge, words in explore().items() if _STORED in words]
    arrows: dict[tuple[str, str], list[str]] = {}
    for to in _PLACES:
        common = [
            word
            for word in RULES
            if to not in _GROUP and all(word in found.get((state, to), []) for state in _GROUP)
        ]
        if common:
            arrows["frame", to] = common
            for state in _GROUP:
                found[state, to] = [word for word in found[state, to] if word not in common]
    arrows |= {edge: words for edge, words in found.items() if words}
    return state_diagram(
        title="The states of a slot, and what leads from one to the next",
        size=_SIZE,
        notes=[_after_report(stored, to) for to in ("Claimed/Idle", NONE)],
        frames=[_FRAME],
        arrows=[(_ROUTES[edge], {word: [] for word in words}) for edge, words in arrows.items()],
        boxes=[StateBox(_short(name), x, y, _kind(name), 140) for name, (x, y) in _PLACES.items()],
    )


def _after_report(stored: list[tuple[str, str]], to: str) -> str:
    """
    What the final report of an attempt leads to, which is no arrow: it ends every state in which one lives.
    """
    states = sorted(_short(state) for state, then in stored if then == to and state != WAITS)
    return f"When the final report is stored, {', '.join(states)} lead to {_short(to)}."


def _short(state: str) -> str:
    return state.rpartition("/")[2]


def _kind(name: str) -> Literal["on", "off"]:
    return "on" if name.startswith("Claimed") else "off"
