"""Who is charged for the jobs, and which concurrency limits they use."""

import re
from typing import Final

from kettle.jobs.concurrency_limits import LimitsError, limits_of, text_of
from kettle.submit.errors import PlacelessError
from kettle.submit.expressions import scalar, unquoted
from kettle.submit.lookup import Lookup, flag, placed
from kettle_wire.ads.types import Ad

NICE: Final = "nice-user"
"""The accounting group of jobs that use only what others do not want."""
_GROUP: Final = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")
_USER: Final = re.compile(r"[A-Za-z0-9_.@-]+")


def charging(lookup: Lookup) -> Ad:
    """The accounting group. With whose name it is charged the access point says, which knows who submits."""
    ad: Ad = {}
    group, user = lookup.get("accounting_group"), lookup.get("accounting_group_user")
    if group:
        name = unquoted(group.text)
        if not _GROUP.fullmatch(name):
            group.refuse(
                f"accounting_group = {group.text} is no name of a group: letters, digits, - and _, and dots between them"
            )
        ad["AcctGroup"] = name
    if user:
        name = unquoted(user.text)
        if not _USER.fullmatch(name):
            user.refuse(f"accounting_group_user = {user.text} is no name of a user")
        ad["AcctGroupUser"] = name
    if flag(lookup, "nice_user", default=False):
        if group and ad["AcctGroup"] != NICE:
            lookup.idle(
                group, "nice_user conflicts with accounting_group, and will be ignored: say one of the two"
            )
        ad.setdefault("AcctGroup", NICE)
        ad["MaxJobRetirementTime"] = 0
    return ad


def concurrency(lookup: Lookup) -> Ad:
    """The concurrency limits, as a list or as an expression that gives one."""
    given, text = lookup.get("concurrency_limits"), lookup.get("concurrency_limits_expr")
    if given and text:
        text.refuse("concurrency_limits_expr and concurrency_limits are the same: say one of them")
    if given:
        try:
            used = limits_of(unquoted(given.text))
        except LimitsError as error:
            given.refuse(f"concurrency_limits: {error}")
        return {"ConcurrencyLimits": text_of(used)} if used else {}
    if text:
        try:
            return {"ConcurrencyLimits": scalar(text.text)}
        except PlacelessError as error:
            raise placed(text, error) from error
    return {}
