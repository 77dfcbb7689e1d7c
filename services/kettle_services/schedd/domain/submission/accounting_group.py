"""
Who is charged for a job: its owner, or its owner within an accounting group, as `group.owner`.

The owner is the authenticated user, so the name that is charged always ends with it; the job chooses the group, as far
as this access point permits it to its owner.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from kettle.jobs.lower_names import lower_names
from kettle_services.schedd.domain.submission.validation import Unacceptable
from kettle_wire.ads import Ad, Expr, Scalar

NICE: Final = "nice-user"
"""The group of jobs that use only what others do not want; everybody may use it."""
EVERYBODY: Final = "*"
_GROUP: Final = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")
_LONGEST: Final = 128
CHARGED: Final = "accountinggroup"
"""The attribute, in lower case, that says of a recorded submission who is charged."""
_SAID: Final = (CHARGED, "acctgroup", "acctgroupuser")
_SPELLED: Final = ("AccountingGroup", "AcctGroup", "AcctGroupUser")
Members = Mapping[str, Sequence[str]]
"""Group -> who may use it."""


def completed(
    ad: Ad, columns: list[str], rows: list[list[Scalar]], *, owner: str, members: Members, usual: str = ""
) -> tuple[Ad, list[str], list[list[Scalar]]]:
    """
    A submission whose jobs say in full who is charged: AccountingGroup, AcctGroup and AcctGroupUser, or none of them.

    `usual`: the group of jobs that name none, which the owner's credential gives; whose name has a dot can be in none.

    Raises Unacceptable for a group that there is not, or that is not for the owner, and for somebody else's name.
    """
    spelled = lower_names(ad)
    common = {name: ad[spelled[name]] for name in _SAID if name in spelled}
    places = [i for i, name in enumerate(columns) if name.lower() in _SAID]
    if usual and "." not in owner:
        members = {**members, usual: (*members.get(usual, ()), owner)}
        common = common or ({} if places else {"acctgroup": usual})
    if not common and not places:
        return ad, columns, rows
    rest: Ad = {name: value for name, value in ad.items() if name.lower() not in _SAID}
    if not places:
        said = zip(_SPELLED, _said(common, owner, members), strict=True)
        return rest | {name: value for name, value in said if value}, columns, rows
    kept = [i for i in range(len(columns)) if i not in places]
    known: dict[tuple[Scalar, ...], tuple[str, str, str]] = {}
    filled: list[list[Scalar]] = []
    for row in rows:
        key = tuple(row[i] for i in places)
        if key not in known:
            known[key] = _said(common | {columns[i].lower(): row[i] for i in places}, owner, members)
        filled.append([*(row[i] for i in kept), *known[key]])
    return rest, [*(columns[i] for i in kept), *_SPELLED], filled


def _said(said: Ad, owner: str, members: Members) -> tuple[str, str, str]:
    """AccountingGroup, AcctGroup and AcctGroupUser of one job."""
    whole, group, user = (_text(said, name, place) for name, place in zip(_SAID, _SPELLED, strict=True))
    if user and user != owner:
        raise Unacceptable(f"you are {owner}: jobs cannot be charged to {user} (accounting_group_user)")
    if whole and whole != owner:
        found = whole.removesuffix(f".{owner}")
        if found == whole:
            raise Unacceptable(
                f'AccountingGroup = "{whole}" does not end with .{owner}; write accounting_group = {whole}'
            )
        if group and group != found:
            raise Unacceptable(f"AccountingGroup says {found}, and AcctGroup says {group}")
        group = found
    if not group:
        return owner, "", owner
    group = _granted(group, owner, members)
    return f"{group}.{owner}", group, owner


def _text(said: Ad, name: str, spelled: str) -> str:
    value = said.get(name, "")
    if isinstance(value, Expr) and value.expr.lower() == "undefined":
        return ""  # only others of the same submission have it
    if not isinstance(value, str):
        raise Unacceptable(f"{spelled} is a name in quotes, not an expression")
    return value


def _granted(group: str, owner: str, members: Members) -> str:
    """
    The group as it was configured: upper and lower case are the same, so each spelling must be the same claimant.

    Raises Unacceptable if the owner may not use it.
    """
    if not _GROUP.fullmatch(group) or len(group) > _LONGEST:
        raise Unacceptable(
            f"'{group}' is no name of an accounting group: letters, digits, - and _, and dots between them"
        )
    if group.lower() == NICE:
        return NICE
    known = {name.lower(): name for name in members}
    name = known.get(group.lower())
    if name is None:
        there_are = ", ".join(sorted(members)) or "none"
        raise Unacceptable(
            f"there is no accounting group {group}; there are: {there_are} ([schedd] accounting_groups)"
        )
    if owner not in members[name] and EVERYBODY not in members[name]:
        raise Unacceptable(
            f"the accounting group {group} is not for {owner}; an administrator may change that"
        )
    if "." in owner:
        raise Unacceptable(
            f"{owner} has a dot in its name, so {name}.{owner} might be somebody else in a group below {name}: "
            f"such jobs can be in no accounting group but {NICE}; submit without one"
        )
    return name


def charged(ad: Ad, columns: list[str], owner: str) -> Callable[[list[Scalar]], str] | str:
    """
    Who is charged for the jobs of a recorded submission: for all of them, or by a job's row.

    Only who has the owner's name at the end: submissions were recorded before anybody looked at it. The group is in lower
    case, so that however it was written it is one claimant.
    """
    places = [i for i, name in enumerate(columns) if name.lower() == CHARGED]
    if places:
        return lambda row: _owned(row[places[-1]], owner)
    return next((_owned(value, owner) for name, value in ad.items() if name.lower() == CHARGED), owner)


def _owned(said: Scalar, owner: str) -> str:
    group = said.removesuffix(f".{owner}") if isinstance(said, str) else ""
    if group == said or not _GROUP.fullmatch(group) or len(group) > _LONGEST:
        return owner
    return f"{group.lower()}.{owner}"
