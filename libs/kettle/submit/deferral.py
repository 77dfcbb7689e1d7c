"""When a job starts: at a time, or repeatedly by the calendar."""

from collections.abc import Mapping
from datetime import UTC
from typing import Final

from kettle.classad import UNDEFINED
from kettle.jobs.crontab import FIELDS, crontab, next_run, numbers_of
from kettle.submit.errors import PlacelessError
from kettle.submit.expressions import constant, expression, unquoted, wire
from kettle.submit.lookup import Lookup, Setting, placed
from kettle_wire.ads.types import Ad, Scalar

CRON: Final[Mapping[str, str]] = {
    "cron_minute": "CronMinute",
    "cron_hour": "CronHour",
    "cron_day_of_month": "CronDayOfMonth",
    "cron_month": "CronMonth",
    "cron_day_of_week": "CronDayOfWeek",
}
"""Command -> attribute."""

REQUIREMENT: Final = (
    "TARGET.HasJobDeferral && (((time() + ScheddInterval) >= (DeferralTime - DeferralPrepTime))"
    " && (time() < (DeferralTime + DeferralWindow)))"
)
WINDOW: Final = 0
PREP_TIME: Final = 300
SCHEDD_INTERVAL: Final = 300


def deferral_of(lookup: Lookup) -> Ad:
    """The attributes of a job that does not start at once; none for any other."""
    cron = {attribute: given for name, attribute in CRON.items() if (given := lookup.get(name))}
    at = lookup.get("deferral_time")
    if at is None and not cron:
        for name in ("deferral_window", "deferral_prep_time"):
            if stray := lookup.get(name):
                lookup.idle(stray, f"{name} goes with deferral_time, or with cron_minute and its like")
        return {}
    ad: Ad = {}
    if at is not None:
        if cron:
            at.refuse("a job runs at one time, deferral_time, or by the calendar, cron_...: not both")
        ad["DeferralTime"] = _seconds(at, "deferral_time")
    else:
        ad |= _cron(cron)
    window, prep = lookup.get("deferral_window"), lookup.get("deferral_prep_time")
    ad["DeferralWindow"] = WINDOW if window is None else _seconds(window, "deferral_window")
    ad["DeferralPrepTime"] = PREP_TIME if prep is None else _seconds(prep, "deferral_prep_time")
    ad["ScheddInterval"] = SCHEDD_INTERVAL
    return ad


def _cron(cron: Mapping[str, Setting]) -> Ad:
    found = {attribute: unquoted(given.text) for attribute, given in cron.items()}
    for attribute, given in cron.items():
        try:
            tuple(numbers_of(attribute, found[attribute]))
        except ValueError as error:
            low, high = FIELDS[attribute]
            raise given.assignment.refused(f"{error}; it takes numbers from {low} to {high}") from error
    if next_run(crontab(found), 0, UTC) is None:
        next(iter(cron.values())).refuse("no year has the days that the cron_... commands name")
    return dict(found)


def _seconds(given: Setting, name: str) -> Scalar:
    """A number of seconds, or an expression that is one when its time has come."""
    try:
        node = expression(given.text)
    except PlacelessError as error:
        raise placed(given, error) from error
    value = constant(node)
    known = value is not None and value is not UNDEFINED  # CurrentTime, for one, is known later
    if known and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
        given.refuse(f"{name} must be a whole number of seconds that is not negative, not {given.text}")
    return wire(node)
