"""
What somebody would have otherwise: a file with settings of the negotiator, priority factors and machines.

It is checked as the settings of a service are, by the same code; a refusal names the file and the place in it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, cast

import msgspec

from kettle.classad import ClassAdParseError, parse
from kettle.runtime.settings_problems import SettingRefused
from kettle_services.negotiator.domain.principals import GROUP
from kettle_services.negotiator.settings import NegotiatorSettings
from kettle_services.simulator.checked_file import CheckedFile, closest
from kettle_services.simulator.domain.changed_machines import Addition, with_machines
from kettle_services.simulator.domain.period import Period
from kettle_services.simulator.domain.pool_rules import PoolRules
from kettle_wire.ads import Ad, Expr

REPLAYED: Final = (
    "accountant_local_domain", "allow_pslot_preemption", "allow_quota_oversubscription", "charge_interval",
    "concurrency_limit_default", "concurrency_limit_defaults", "concurrency_limits", "consider_preemption",
    "default_prio_factor", "group_accept_surplus", "group_autoregroup", "group_quota_max_allocation_rounds",
    "group_sort_expr", "groups", "interval", "nice_user_prio_factor", "post_job_rank", "pre_job_rank",
    "preemption_rank", "preemption_requirements", "priority_halflife", "remote_prio_factor",
)  # fmt: skip
"""The negotiator's settings that decide who gets what; the others are about how its process runs."""
WORKLIFE: Final = 1200.0
"""CLAIM_WORKLIFE of a schedd without another setting."""

Factor = Annotated[float, msgspec.Meta(ge=1, le=1e18)]


class Machines(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The table `[machines]`."""

    scale: Annotated[float, msgspec.Meta(ge=0, le=1000)] = 1.0
    start: str = ""
    """START of all machines, an expression."""
    rank: str = ""
    """RANK of all machines, an expression."""
    user_preemption: bool | None = None
    """Whether they let the pool's priorities count."""
    add: list["Added"] = []


class Added(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One of `[[machines.add]]`."""

    cpus: Annotated[int, msgspec.Meta(ge=1, le=100_000)]
    memory: Annotated[int, msgspec.Meta(ge=1)]
    """MiB."""
    count: Annotated[int, msgspec.Meta(ge=1, le=100_000)] = 1
    like: str = ""


class Schedds(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The table `[schedd]`."""

    claim_worklife: Annotated[float, msgspec.Meta(ge=0)] | None = None
    significant_attributes: list[str] = []
    """Attributes of jobs at which changed expressions look, besides those that are significant anyway."""


class ChangeError(Exception):
    """The file cannot be used; the message is a sentence for the person who wrote it."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What is different."""

    settings: NegotiatorSettings
    factors: dict[str, float] = {}
    worklife: float = WORKLIFE
    significant: list[str] = []
    machines: Machines = Machines()
    sentences: list[str] = []


def rules(settings: NegotiatorSettings, *, worklife: float, factors: Mapping[str, float]) -> PoolRules:
    """What a pool goes by that has these settings."""
    return PoolRules(
        groups=settings.group_policy,
        limits=settings.limit_rules,
        ranks=settings.ranks,
        preemption=settings.preemption,
        factors=settings.factors,
        half_life=settings.priority_halflife,
        interval=settings.interval,
        charge_interval=settings.charge_interval,
        worklife=worklife,
        prio_factors=dict(factors),
    )


def played(period: Period, change: Change) -> Period:
    """The period with the machines that somebody would have."""
    machines = change.machines
    said: Ad = {}
    if machines.start:
        said["Start"] = Expr(machines.start)
    if machines.rank:
        said["Rank"] = Expr(machines.rank)
    if machines.user_preemption is not None:
        said["UserPreemption"] = machines.user_preemption
    add = [Addition(count=one.count, cpus=one.cpus, memory=one.memory, like=one.like) for one in machines.add]
    return with_machines(period, scale=machines.scale, said=said, add=add)


def read(path: Path, base: NegotiatorSettings, *, worklife: float) -> Change:
    """
    What the file says is different from these settings.

    Raises:
        ChangeError: it cannot be read, or says what no pool can have.
    """
    file = CheckedFile(path, ChangeError)
    tables = file.tables()
    known = ("negotiator", "schedd", "factors", "machines")
    for name, content in tables.items():
        if name not in known:
            raise file.refuse((name,), f"there is no such table{closest(name, known)}; {', '.join(known)}")
        file.table(content, (name,))
    settings = negotiator_settings(file, tables.get("negotiator", {}), base)
    schedd: Schedds = file.convert(tables.get("schedd", {}), Schedds, ("schedd",))
    factors = priority_factors(file, tables.get("factors", {}), settings)
    machines = _machines(file, tables.get("machines", {}))
    change = Change(
        settings=settings,
        factors=factors,
        worklife=worklife if schedd.claim_worklife is None else schedd.claim_worklife,
        significant=schedd.significant_attributes,
        machines=machines,
    )
    sentences = _sentences(base, worklife, change)
    if not sentences:
        raise ChangeError(f"{path}: it changes nothing: say something else than the pool's own settings")
    return msgspec.structs.replace(change, sentences=sentences)


def negotiator_settings(
    file: CheckedFile, said: dict[str, Any], base: NegotiatorSettings
) -> NegotiatorSettings:
    """These settings with what the table `[negotiator]` says in their place, or why that cannot be."""
    fields = {field.encode_name: field for field in msgspec.structs.fields(NegotiatorSettings)}
    values: dict[str, Any] = {}
    for name, value in said.items():
        keys = ("negotiator", name)
        if name not in fields:
            raise file.refuse(keys, f"there is no such setting{closest(name, REPLAYED)}")
        if name not in REPLAYED:
            raise file.refuse(
                keys, "this setting decides nothing about who gets what; see the how-to for those"
            )
        values[fields[name].name] = file.convert(value, fields[name].type, keys)
    try:
        return msgspec.structs.replace(base, **values)
    except SettingRefused as error:
        raise file.refuse(("negotiator", *error.keys), str(error)) from error


def priority_factors(
    file: CheckedFile, said: dict[str, Any], settings: NegotiatorSettings
) -> dict[str, float]:
    """The table `[factors]`: of submitters and groups, or why that cannot be."""
    tree = settings.group_policy.tree
    found: dict[str, float] = {}
    for name, value in said.items():
        if name.startswith(GROUP) and tree.find(name.strip("<>")) is None:
            groups = ", ".join(f"<{group.name}>" for group in tree.groups[1:])
            raise file.refuse(("factors", name), f"there is no such group; there are: {groups or 'none'}")
        found[name] = file.convert(value, Factor, ("factors", name))
    return found


def _machines(file: CheckedFile, said: dict[str, Any]) -> Machines:
    machines: Machines = file.convert(said, Machines, ("machines",))
    for name, text in (("start", machines.start), ("rank", machines.rank)):
        try:
            if text:
                parse(text)
        except ClassAdParseError as error:
            raise file.refuse(("machines", name), f"it is no expression: {error}") from error
    return machines


def _sentences(base: NegotiatorSettings, worklife: float, change: Change) -> list[str]:
    said: list[str] = []
    for name in REPLAYED:
        was, now = getattr(base, name), getattr(change.settings, name)
        if was != now:
            said.append(f"negotiator.{name}: {_shown(was)} -> {_shown(now)}")
    if change.worklife != worklife:
        said.append(f"schedd.claim_worklife: {worklife:g} -> {change.worklife:g}")
    said += [f"priority factor of {name}: {factor:g}" for name, factor in sorted(change.factors.items())]
    machines, usual = change.machines, Machines()
    if machines.scale != 1.0:
        said.append(f"{machines.scale:g} times as many machines")
    said += [
        f"machines.{name}: {_shown(getattr(machines, name))}"
        for name in ("start", "rank", "user_preemption")
        if getattr(machines, name) != getattr(usual, name)
    ]
    said += [f"{one.count} machines more of {one.cpus} cores and {one.memory} MiB" for one in machines.add]
    return said


def _shown(value: object) -> str:
    return msgspec.json.encode(cast("Any", value), order="deterministic").decode()
