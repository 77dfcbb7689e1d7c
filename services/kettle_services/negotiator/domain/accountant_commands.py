"""What administrators may do with principals, as events; what makes no sense is refused with a sentence."""

from collections.abc import Iterable

from kettle_services.negotiator.domain.accountant import Accountant
from kettle_services.negotiator.domain.principals import GROUP, LEAST, group_principal
from kettle_wire.events import PrincipalDeleted, PrincipalEvent, PrincipalReset, PrincipalSet
from kettle_wire.events.principal import Setting


class Unacceptable(ValueError):  # noqa: N818 - what is refused is the command
    """The command says something that no principal can have; the message says what it can."""


_AT_LEAST: dict[Setting, tuple[float, str]] = {
    "priority": (LEAST, "a real priority is 0.5 or more"),
    "factor": (1.0, "a priority factor is 1 or more; the smaller, the larger the share"),
    "accumulated": (0.0, "accumulated usage is 0 or more seconds"),
    "begin": (0.0, "the begin of usage is in seconds since 1970"),
    "last": (0.0, "the last usage is in seconds since 1970"),
    "floor": (0.0, "a floor is 0 or more"),
    "ceiling": (-1.0, "a ceiling is 0 or more, or -1 for none"),
}
_MOST = 1e18
_COUNTED: frozenset[Setting] = frozenset({"priority", "accumulated"})
"""What a charge changes too."""


def setting(
    accountant: Accountant, name: str, what: Setting, value: float, *, now: float, by: str
) -> list[PrincipalEvent]:
    """Set something of a principal, once it is charged what would change it later; raises Unacceptable."""
    least, rule = _AT_LEAST[what]
    if not least <= value <= _MOST:  # this is also false for what is no number
        raise Unacceptable(f"{what} of {name} cannot be {value:g}: {rule}")
    if name.startswith(GROUP):
        _of_group(accountant, name, what)
    principal = accountant.principals.get(name)
    ceiling = value if what == "ceiling" else principal.ceiling if principal else -1.0
    floor = value if what == "floor" else principal.floor if principal else 0.0
    if 0 <= ceiling < floor:
        raise Unacceptable(f"the floor of {name} would be {floor:g}, above its ceiling of {ceiling:g}")
    event = PrincipalSet(principal=name, setting=what, value=value, at=now, by=by)
    return [*(accountant.charge_one(name, now) if what in _COUNTED else ()), event]


def _of_group(accountant: Accountant, name: str, what: Setting) -> None:
    known = [group_principal(group.name) for group in accountant.tree.groups[1:]]
    if name.lower() not in [one.lower() for one in known]:
        raise Unacceptable(f"there is no group {name}; there are: {', '.join(known) or 'none'}")
    if name not in known:
        raise Unacceptable(
            f"write {known[[one.lower() for one in known].index(name.lower())]}, as it is configured"
        )
    if what in {"floor", "ceiling"}:
        raise Unacceptable(f"a group has no {what} but its quota: [negotiator.groups] in the settings")


def resetting(accountant: Accountant, names: Iterable[str], *, now: float, by: str) -> list[PrincipalEvent]:
    """Set the accumulated usage of principals to nothing."""
    events: list[PrincipalEvent] = []
    for name in names:
        events += [*accountant.charge_one(name, now), PrincipalReset(principal=name, at=now, by=by)]
    return events


def deleting(accountant: Accountant, name: str, *, now: float, by: str) -> list[PrincipalEvent]:
    """Forget a principal."""
    return [*accountant.charge_one(name, now), PrincipalDeleted(principal=name, at=now, by=by)]


def forgetting(accountant: Accountant, *, now: float) -> list[PrincipalEvent]:
    """Remove principals without any state, so that names which came once do not stay permanently."""
    names = accountant.forgettable(now)
    return [PrincipalDeleted(principal=name, at=now, by="the accountant") for name in names]
