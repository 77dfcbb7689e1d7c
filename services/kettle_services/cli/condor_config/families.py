"""Knobs whose names contain a name of the site's, and those of which several make one setting."""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final

from kettle.classad import ClassAdError, parse
from kettle.classad.nodes import Literal
from kettle.jobs.quoting import (
    QuotingError,
    environment_of,
    split_environment_v1,
    split_v2,
)
from kettle.pool.personal_settings import Value
from kettle_services.cli.condor_config.values import (
    NoValueError,
    command_line,
    constant,
    number,
    truth,
    words,
)

Take = Callable[[str], str]
"""The expanded text of a knob, which counts as carried over from then on; empty if nobody has set it."""


class Family:
    """What the families need of a configuration."""

    def __init__(
        self, names: list[str], take: Callable[[str], str], refuse: Callable[[str, str], None]
    ) -> None:
        """
        `names` are all knobs as they are spelt, `take` gives the text of one, `refuse` says why one is not carried over.
        """
        self.names: Final = names
        self.take: Final = take
        self.refuse: Final = refuse

    def matching(self, pattern: str) -> Iterator[re.Match[str]]:
        """The knobs whose whole names have a shape."""
        compiled = re.compile(pattern, re.IGNORECASE)
        for name in self.names:
            if found := compiled.fullmatch(name):
                yield found

    def carried(self, name: str, convert: Callable[[str], Value]) -> Value | None:
        """The value of one knob; None if it is not set, or not to be used."""
        text = self.take(name)
        if not text.strip():
            return None
        try:
            return convert(text)
        except NoValueError as error:
            self.refuse(name, str(error))
            return None


def slot_types(family: Family) -> Value | None:
    """SLOT_TYPE_<N> and what belongs to it, as a list in the order of N."""
    numbers = {
        int(found[1]) for found in family.matching(r"(?:NUM_SLOTS_TYPE|SLOT_TYPE)_(\d+)(?:_PARTITIONABLE)?")
    }
    types: list[Value] = []
    for each in sorted(numbers):
        count = family.carried(f"NUM_SLOTS_TYPE_{each}", lambda text: number(text, whole=True))
        shares = _shares(family, f"SLOT_TYPE_{each}")
        divided = family.carried(f"SLOT_TYPE_{each}_PARTITIONABLE", truth)
        types.append({"count": 0 if count is None else count, "partitionable": bool(divided), **shares})
    if not types and (count := family.carried("NUM_SLOTS", lambda text: number(text, whole=True))):
        types.append({"count": count})
    return types or None


def _shares(family: Family, name: str) -> Mapping[str, Value]:
    """`25%`, or `cpus=2, memory=50%, gpus=1`."""
    shares: dict[str, Value] = {}
    resources: dict[str, Value] = {}
    for part in words(re.sub(r"\s*=\s*", "=", family.take(name))):
        key, equals, share = part.partition("=")
        share = "auto" if share.lower() in {"auto", "automatic"} else share
        if not equals:
            if key != "100%":
                shares |= dict.fromkeys(("cpus", "memory", "disk"), key)
        elif (known := _RESOURCES.get(key.lower())) is not None:
            shares[known] = int(share) if share.isdecimal() else share
        elif key.lower() in {"swap", "vmem", "virtualmemory"}:
            family.refuse(name, f"{key} is not counted here")
        else:
            resources[key] = int(share) if share.isdecimal() else share
    return {**shares, **({"resources": resources} if resources else {})}


_RESOURCES: Final = {
    "c": "cpus", "cpu": "cpus", "cpus": "cpus", "m": "memory", "mem": "memory", "ram": "memory", "memory": "memory",
    "d": "disk", "disk": "disk",
}  # fmt: skip


def machine_resources(family: Family) -> Value | None:
    """MACHINE_RESOURCE_<tag>: a number, or the ids of the pieces."""
    found: dict[str, Value] = {}
    for name in list(family.matching(r"MACHINE_RESOURCE_(?!INVENTORY_)(\w+)")):
        if (said := words(family.take(name[0]))) != []:
            found[name[1]] = int(said[0]) if len(said) == 1 and said[0].isdecimal() else said
    return found or None


def offline_resources(family: Family) -> Value | None:
    """OFFLINE_MACHINE_RESOURCE_<tag>."""
    found: dict[str, Value] = {
        name[1]: words(family.take(name[0]))
        for name in list(family.matching(r"OFFLINE_MACHINE_RESOURCE_(\w+)"))
    }
    return found or None


def discovery(family: Family) -> Value | None:
    """MACHINE_RESOURCE_INVENTORY_<tag>: there is one program, and it may say several resources."""
    found = list(family.matching(r"MACHINE_RESOURCE_INVENTORY_(\w+)"))
    for name in found[1:]:
        family.refuse(name[0], "there is one program for discovery, which may print several resources")
    return [*command_line(family.take(found[0][0]))] if found else None


def modify_requests(family: Family) -> Value | None:
    """MODIFY_REQUEST_EXPR_REQUEST<resource>."""
    spelt = {"cpus": "Cpus", "memory": "Memory", "disk": "Disk"}
    found: dict[str, Value] = {}
    for name in list(family.matching(r"MODIFY_REQUEST_EXPR_REQUEST(\w+)")):
        if text := family.take(name[0]):
            found[spelt.get(name[1].lower(), name[1])] = text
    return found or None


def attributes(family: Family) -> Value | None:
    """STARTD_ATTRS names knobs whose values are attributes of slots; here they are constants."""
    found: dict[str, Value] = {}
    for name in dict.fromkeys([*words(family.take("STARTD_ATTRS")), *words(family.take("STARTD_EXPRS"))]):
        if not (text := family.take(name)):
            continue
        try:
            value = constant(text)
            if not isinstance(parse(text), Literal):
                family.refuse(
                    name, f"attributes of [startd] are constants, and this is an expression: {text}"
                )
            elif isinstance(value, bool | int | float | str):
                found[name] = value
        except (NoValueError, ClassAdError) as error:
            family.refuse(name, str(error))
    return found or None


def job_environment(family: Family) -> Value | None:
    """STARTER_JOB_ENVIRONMENT, in one of the two forms that an environment has in a submit description."""

    def converted(text: str) -> Value:
        stripped = text.strip()
        try:
            if stripped.startswith('"') and stripped.endswith('"') and len(stripped) > 1:
                return environment_of(split_v2(stripped[1:-1].replace('""', '"')))
            return environment_of(split_environment_v1(stripped))
        except QuotingError as error:
            raise NoValueError(str(error)) from error

    return family.carried("STARTER_JOB_ENVIRONMENT", converted)


def job_hooks(family: Family) -> Value | None:
    """<KEYWORD>_HOOK_<HOOK>."""
    found: dict[str, dict[str, Value]] = {}
    hooks = "PREPARE_JOB_BEFORE_TRANSFER|PREPARE_JOB|UPDATE_JOB_INFO|JOB_EXIT"
    for name in list(family.matching(rf"(\w+)_HOOK_({hooks})")):
        found.setdefault(name[1], {})[name[2].lower()] = [*command_line(family.take(name[0]))]
    return found or None


def groups(family: Family) -> Value | None:
    """GROUP_NAMES, with what each is configured to."""
    found: dict[str, Value] = {}
    for name in words(family.take("GROUP_NAMES")):
        rule: dict[str, Value | None] = {
            "quota": family.carried(f"GROUP_QUOTA_{name}", lambda text: number(text, whole=False)),
            "quota_dynamic": family.carried(
                f"GROUP_QUOTA_DYNAMIC_{name}", lambda text: number(text, whole=False)
            ),
            "accept_surplus": family.carried(f"GROUP_ACCEPT_SURPLUS_{name}", truth),
            "autoregroup": family.carried(f"GROUP_AUTOREGROUP_{name}", truth),
            "prio_factor": family.carried(
                f"GROUP_PRIO_FACTOR_{name}", lambda text: number(text, whole=False)
            ),
        }
        found[name] = {key: value for key, value in rule.items() if value is not None}
    return found or None


def concurrency_limits(family: Family) -> Value | None:
    """<NAME>_LIMIT."""
    found: dict[str, Value] = {}
    for name in list(family.matching(r"([A-Za-z_][\w.]*)_LIMIT")):
        if (limit := family.carried(name[0], lambda text: number(text, whole=False))) is not None:
            found[name[1].lower()] = limit
    return found or None


def limit_defaults(family: Family) -> Value | None:
    """CONCURRENCY_LIMIT_DEFAULT_<prefix>."""
    found: dict[str, Value] = {}
    for name in list(family.matching(r"CONCURRENCY_LIMIT_DEFAULT_(\w+)")):
        if (limit := family.carried(name[0], lambda text: number(text, whole=False))) is not None:
            found[name[1].lower()] = limit
    return found or None


def job_transforms(family: Family) -> Value | None:
    """JOB_TRANSFORM_NAMES, in their order."""
    found: list[Value] = [
        {"name": name, "transform": text}
        for name in words(family.take("JOB_TRANSFORM_NAMES"))
        if (text := family.take(f"JOB_TRANSFORM_{name}"))
    ]
    return found or None


def submit_requirements(family: Family) -> Value | None:
    """SUBMIT_REQUIREMENT_NAMES, in their order."""
    found: list[Value] = []
    for name in words(family.take("SUBMIT_REQUIREMENT_NAMES")):
        rule: dict[str, Value] = {"name": name, "expression": family.take(f"SUBMIT_REQUIREMENT_{name}")}
        if reason := family.take(f"SUBMIT_REQUIREMENT_{name}_REASON"):
            rule["reason"] = reason
        if warning := family.take(f"SUBMIT_REQUIREMENT_{name}_IS_WARNING"):
            rule["is_warning"] = warning
        if rule["expression"]:
            found.append(rule)
    return found or None


def system_periodic(family: Family, action: str) -> Value | None:
    """SYSTEM_PERIODIC_<ACTION>, and those of SYSTEM_PERIODIC_<ACTION>_NAMES, which come first."""
    knob = f"SYSTEM_PERIODIC_{action}"
    found: list[Value] = []
    for name in [*words(family.take(f"{knob}_NAMES")), ""]:
        of = f"{knob}_{name}" if name else knob
        text = family.take(of)
        if not text or text.strip().lower() == "false":
            continue
        rule: dict[str, Value] = {"expression": text, **({"name": name} if name else {})}
        if reason := family.take(f"{of}_REASON"):
            rule["reason"] = reason
        subcode = family.take(f"{of}_SUBCODE")
        if subcode and action in {"HOLD", "VACATE"}:
            rule["subcode"] = subcode
        found.append(rule)
    return found or None


def daemon_list(family: Family) -> Value | None:
    """
    DAEMON_LIST: the daemons that exist here too; what an access point and a central manager need besides is added.
    """
    named = [word.upper() for word in words(family.take("DAEMON_LIST"))]
    if not named:
        return None
    found: list[str] = []
    for each in named:
        if each in _DAEMONS:
            found += [role for role in _DAEMONS[each] if role not in found]
        elif each != "MASTER":
            family.refuse("DAEMON_LIST", _NO_DAEMON.get(each, f"there is no daemon for {each}"))
    return found or None


_DAEMONS: Final = {
    "COLLECTOR": ("collector", "accounting", "gateway"),
    "NEGOTIATOR": ("negotiator",),
    "SCHEDD": ("schedd", "shadow", "dagman"),
    "STARTD": ("startd",),
}
_NO_DAEMON: Final = {
    "SHARED_PORT": "SHARED_PORT is not needed: services listen on no port",
    "KBDD": "KBDD is not needed: the startd looks at the devices itself",
    "CREDD": "there is no store of users' credentials yet (CREDD)",
    "JOB_ROUTER": "add ce, and its routes in [ce]: docs/how-to/a-ce-for-a-slurm-site.md (JOB_ROUTER)",
    "DEFRAG": "drain machines with kettle drain (DEFRAG)",
    "HAD": "run standbys instead, such as negotiator#2 (HAD)",
    "REPLICATION": "run standbys instead, such as negotiator#2 (REPLICATION)",
}


def super_users(family: Family) -> Value | None:
    """QUEUE_SUPER_USERS, without the accounts of HTCondor itself."""
    found = [
        name for name in words(family.take("QUEUE_SUPER_USERS")) if name.lower() not in {"condor", "root"}
    ]
    return found or None


def lease(family: Family) -> Value | None:
    """So many intervals as may be missed."""
    if not (missed := family.carried("MAX_CLAIM_ALIVES_MISSED", lambda text: number(text, whole=False))):
        return None
    interval = family.carried("ALIVE_INTERVAL", lambda text: number(text, whole=False))
    return float(str(missed)) * float(str(interval or 300.0))


def user_preemption(family: Family) -> Value | None:
    """Machines permit the negotiator's preemption only if they say so; HTCondor's always do."""
    text = family.take("PREEMPTION_REQUIREMENTS").strip()
    return None if not text or text.lower() == "false" else True


FAMILIES: Final[Mapping[str, Callable[[Family], Value | None]]] = {
    "startd.slot_types": slot_types,
    "startd.machine_resources": machine_resources,
    "startd.offline_machine_resources": offline_resources,
    "startd.discovery": discovery,
    "startd.modify_request_expr": modify_requests,
    "startd.attributes": attributes,
    "startd.job_hooks": job_hooks,
    "startd.job_environment": job_environment,
    "startd.user_preemption": user_preemption,
    "negotiator.groups": groups,
    "negotiator.concurrency_limits": concurrency_limits,
    "negotiator.concurrency_limit_defaults": limit_defaults,
    "schedd.job_transforms": job_transforms,
    "schedd.submit_requirements": submit_requirements,
    **{
        f"schedd.system_periodic_{action.lower()}": partial(system_periodic, action=action)
        for action in ("HOLD", "RELEASE", "REMOVE", "VACATE")
    },
    "schedd.lease": lease,
    "schedd.queue_super_users": super_users,
    "master.daemon_list": daemon_list,
}
"""By the setting that each makes."""
