"""What scalers and provisioners measure of pools of workers; `metrics.METRICS` has them among all others."""

from typing import Final

from kettle_wire.telemetry.declaration import LONG_DURATIONS, Attribute, Metric

_WORKER_POOL: Final = Attribute(name="worker_pool", meaning="The pool of workers, as its file names it.")
_OFFER: Final = Attribute(name="offer", meaning="The offer that the machine is made from.")
_PROVIDER: Final = Attribute(name="provider", meaning="The provider, as it is set up.")
_A_POOL: Final = "a pool of workers"
_A_CALL: Final = "a request to a provider"

LEASES: Final = Metric(
    name="kettle.scaler.leases",
    kind="gauge",
    unit="{lease}",
    meaning="Leases that are not over.",
    services=("scaler",),
    attributes=(_WORKER_POOL, _OFFER, Attribute(name="state", meaning="`LeaseState`.")),
    most=3000,
    when="a lease",
)
POOL_MACHINES: Final = Metric(
    name="kettle.scaler.machines",
    kind="gauge",
    unit="{machine}",
    meaning="Machines of a pool of workers.",
    services=("scaler",),
    attributes=(
        _WORKER_POOL,
        Attribute(
            name="phase",
            meaning="`wanted`: coming and ready, with those that a bound keeps the last plan from asking for.",
            values=("wanted", "coming", "ready", "leaving"),
        ),
    ),
    most=1000,
    when=_A_POOL,
)
HOSTS: Final = Metric(
    name="kettle.scaler.static_machines",
    kind="gauge",
    unit="{machine}",
    meaning="Machines of a static pool that are put to sleep and woken.",
    services=("scaler",),
    attributes=(
        _WORKER_POOL,
        Attribute(
            name="state",
            meaning="`broken`: it did not wake again and again.",
            values=("awake", "hibernating", "asleep", "waking", "broken"),
        ),
    ),
    most=1000,
    when=_A_POOL,
)
OPEN_OFFERS: Final = Metric(
    name="kettle.scaler.offers",
    kind="gauge",
    unit="{offer}",
    meaning="Offers of a pool of workers.",
    services=("scaler",),
    attributes=(
        _WORKER_POOL,
        Attribute(
            name="state",
            meaning="`trial`: with one machine, to see; `closed`: the offer, its template or its provider is not used now.",
            values=("open", "trial", "closed"),
        ),
    ),
    most=1000,
    when=_A_POOL,
)
PROVIDER_BREAKERS: Final = Metric(
    name="kettle.scaler.providers",
    kind="gauge",
    unit="{provider}",
    meaning="1 for the state that a provider is in, 0 for the others.",
    services=("scaler",),
    attributes=(
        _PROVIDER,
        Attribute(
            name="state",
            meaning="`frozen`: so many of its machines seem to be lost that none is given up.",
            values=("open", "trial", "closed", "frozen"),
        ),
    ),
    when=_A_POOL,
)
OLDEST_INTENT: Final = Metric(
    name="kettle.scaler.intent.age",
    kind="gauge",
    unit="s",
    meaning="Since when a provider is being asked for a machine and nobody knows its answer: the oldest; 0: there is none.",
    services=("scaler",),
)
CREATES: Final = Metric(
    name="kettle.scaler.creates",
    kind="counter",
    unit="{request}",
    meaning="Machines that providers were asked for.",
    services=("scaler",),
    attributes=(
        _PROVIDER,
        Attribute(name="result", meaning="`made`, `in-doubt`, or the class of the error (`ErrorClass`)."),
    ),
    when=_A_CALL,
)
MACHINE_START: Final = Metric(
    name="kettle.scaler.machine.start",
    kind="histogram",
    unit="s",
    meaning="From the plan that asks for a machine until it takes jobs.",
    services=("scaler",),
    attributes=(_WORKER_POOL, _OFFER),
    buckets=LONG_DURATIONS,
    when="a machine that is ready",
)
PLAN_DURATION: Final = Metric(
    name="kettle.scaler.plan.duration",
    kind="histogram",
    unit="s",
    meaning="The making of one plan.",
    services=("scaler",),
)
DEMAND: Final = Metric(
    name="kettle.scaler.demand",
    kind="gauge",
    unit="{job}",
    meaning="Idle jobs that the last plan looked at.",
    services=("scaler",),
    attributes=(
        Attribute(
            name="state",
            meaning="`bounded`: an offer would do, and is closed, paused or used up; `impossible`: no offer can hold them.",
            values=("free", "coming", "planned", "limited", "young", "bounded", "impossible"),
        ),
    ),
)
SPENT: Final = Metric(
    name="kettle.scaler.spent",
    kind="gauge",
    unit="{currency}",
    meaning="What the machines of a pool of workers have cost on this day (UTC).",
    services=("scaler",),
    attributes=(_WORKER_POOL, Attribute(name="currency", meaning="Its code of three letters.")),
    when="a pool of workers with prices",
)
BUDGET: Final = Metric(
    name="kettle.scaler.budget",
    kind="gauge",
    unit="{currency}",
    meaning="What they may cost on a day.",
    services=("scaler",),
    attributes=SPENT.attributes,
    when="a pool of workers with a budget",
)
ORPHANS: Final = Metric(
    name="kettle.scaler.orphans",
    kind="counter",
    unit="{machine}",
    meaning="Machines of ours that were found and that no lease wants.",
    services=("scaler",),
    attributes=(_PROVIDER,),
    when="such a machine",
)
PROVIDER_CALLS: Final = Metric(
    name="kettle.provisioner.call.duration",
    kind="histogram",
    unit="s",
    meaning="One call of a provider, the wait for its turn not included.",
    services=("provisioner",),
    attributes=(
        _PROVIDER,
        Attribute(
            name="call",
            meaning="What it was asked.",
            values=("check", "console", "create", "delete", "find", "get", "room", "switch"),
        ),
        Attribute(
            name="outcome",
            meaning="`unknown`: it did not answer, or not in time.",
            values=("done", "refused", "unknown"),
        ),
    ),
    buckets=LONG_DURATIONS,
    most=1000,
    when=_A_CALL,
)
PROVIDER_RATE: Final = Metric(
    name="kettle.provisioner.rate",
    kind="gauge",
    unit="{call}",
    meaning="Calls in a second that a provider gets at most: fewer than set, while it says that these are too many.",
    services=("provisioner",),
    attributes=(_PROVIDER,),
)
PROVIDERS_USABLE: Final = Metric(
    name="kettle.provisioner.usable",
    kind="gauge",
    unit="{provider}",
    meaning="1 for a provider that can be used as it is set up, else 0.",
    services=("provisioner",),
    attributes=(_PROVIDER,),
)

METRICS: Final = tuple(value for value in list(globals().values()) if isinstance(value, Metric))
"""All of them, in the order of this module."""
