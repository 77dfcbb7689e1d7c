"""
Why an idle job waits, and the nearest thing that would change it: what the negotiator knows, as sentences.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal

from kettle.terminal.quantities import counted, size
from kettle_wire.ads.types import Expr

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kettle_wire.ads.types import Ad, Scalar
    from kettle_wire.commands.negotiator import Analysis, Present, Remedy, SuggestedEdit, Tried, UsedUp
    from kettle_wire.events import Rejection

_RULES: Final = {
    "off": "the pool does not consider preemption (consider_preemption)",
    "no_rule": "the pool has no rule for preemption (preemption_requirements)",
    "machine": "their machines do not let priorities count (user_preemption of the startd)",
    "rank": "their machines rank the jobs that run there higher",
    "requirements": "preemption_requirements of the pool is not true for them",
    "share": "the rules would allow it, but not beyond the share or limit of this submitter",
}
_REMEDIES: Final = 3
_PRESENT: Final = 3
_SHOWN: Final = 3
_LATER: Final = ", as soon as their own policies let them"
_TARGETS: Final = re.compile(r"\bTARGET\.(\w+)", re.IGNORECASE)
_SAFE: Final = re.compile(r"[\w.=/:+-]+")
Outlook = Literal["now", "when", "never"]


def turn(rejection: Rejection, able: int, slots: int, used_up: Sequence[UsedUp] = ()) -> Iterator[str]:
    """What a job waits for that some slots could run; `used_up`: of what too little is left there now."""
    got = f"; of {rejection.asked} like it {rejection.given} got one in that cycle" if rejection.given else ""
    yield f"{able} of {counted(slots, 'slot')} could run it{got}."
    lacks = too_little(able, used_up)
    yield _waits(rejection, lacks)
    if lacks and rejection.cause == "share":
        yield f"At this moment {lacks}."
    for held in rejection.withheld:
        yield (
            f"{counted(held.slots, 'slot')} of others would suit, which do not make room: {_RULES.get(held.rule, held.rule)}."
        )


def too_little(able: int, used_up: Sequence[UsedUp]) -> str:
    """Which resources of the slots that could run a job are used up; empty if that is known of none."""
    if not used_up:
        return ""
    if able == 1:
        return f"the slot that could run it has {' and '.join(map(_lacks, used_up))}"
    each = (f"{one.slots} {'has' if one.slots == 1 else 'have'} {_lacks(one)}" for one in used_up)
    return f"of the {able} slots that could run it {' and '.join(each)}"


def _lacks(used: UsedUp) -> str:
    name = used.resource
    most = "" if used.slots == 1 else "at most "
    if (what := name.lower()) in {"memory", "disk"}:
        left, asked = (_amount(f"request{name}", each) for each in (used.left, used.asked))
        return f"too little {what} left ({most}{left}, where it asks for {asked})"
    return f"too few {'cores' if what == 'cpus' else name} left ({most}{used.left}, where it asks for {used.asked:g})"


def _waits(rejection: Rejection, used_up: str) -> str:
    name = rejection.submitter
    share = f"{rejection.used:g} of {rejection.share:g}"
    match rejection.cause:
        case "share":
            return (
                f"Its submitter has its share of the pool ({name} has {share} in slot weights) and waits for its turn; see "
                "kettle fairshare."
            )
        case "ceiling":
            return (
                f"Its submitter has reached its ceiling ({name} has {rejection.used:g}); an administrator may raise it with "
                f"kettle userprio --setceiling {name} VALUE."
            )
        case "quota":
            return (
                f"Its accounting group has all that its quota lets it have ({name} has {share} of what its group may have); "
                "see kettle fairshare."
            )
        case "concurrency":
            limits = ", ".join(rejection.limits) or "one of its limits"
            return f"A concurrency limit is reached: {limits}. It runs when others that use it have ended."
        case _:
            return f"It waits for its turn: {used_up or 'those that could run it are taken'}."


def outlook(analysis: Analysis) -> Outlook:
    """
    Whether some slot could take one at this moment, some may when it is free or thinks otherwise, or none ever will.
    """
    if analysis.able:
        return "now" if analysis.free else "when"
    return "when" if analysis.later and not analysis.fault else "never"


def by_themselves(analysis: Analysis) -> Iterator[str]:
    """What those slots wait for that refuse by nothing but what changes by itself."""
    if not analysis.later:
        return
    waiting = sorted((one for one in analysis.clauses if one.waiting), key=lambda one: -one.waiting)
    slots = counted(analysis.later, "slot")
    yield (
        f"{slots} more may take it later, without anybody's doing."
        if analysis.able
        else f"No slot takes it now, but {analysis.later} of {counted(analysis.slots, 'slot')} may later, without anybody's doing."
    )
    for tried in waiting[:_SHOWN]:
        wait = f"{counted(tried.waiting, 'slot')} {'waits' if tried.waiting == 1 else 'wait'}"
        if tried.present:
            whose = "its own clause" if tried.side == "slot" and tried.waiting == 1 else "their own clause"
            whose = whose if tried.side == "slot" else "the job's clause"
            there = " and ".join(_present(each) for each in tried.present)
            yield f"{wait} for {whose} {tried.text}; there {there}."
        else:
            yield f"{wait} for something else: {tried.text}."


def ways_out(analysis: Analysis, ad: Ad) -> Iterator[str]:
    """What would let more slots run it, the nearest first; `ad` is the job's."""
    for remedy in analysis.remedies[:_REMEDIES]:
        yield _remedy(remedy, analysis)
    yield from _without_clauses(analysis, ad)
    if analysis.for_later:
        for edit in analysis.edits[:_REMEDIES]:
            yield f"{counted(edit.slots, 'slot')} would match without the clause {' and '.join(edit.dropped)}{_LATER}."
    elif not (analysis.remedies or analysis.later or analysis.able):
        yield from _together(analysis)


def _without_clauses(analysis: Analysis, ad: Ad) -> Iterator[str]:
    for tried in analysis.clauses:
        if tried.without and tried.side == "job":
            there = " and ".join(_present(each) for each in tried.present)
            yield (
                f"{counted(tried.without, 'slot')} more would match without the clause {tried.text}"
                f"{f'; there {there}' if there else ''}."
            )
        elif tried.only and tried.side == "slot" and not tried.waiting:
            yield f"{counted(tried.only, 'slot')} would match but for a clause of the slot, {tried.text}{_asked_job(tried, ad)}."


def _together(analysis: Analysis) -> Iterator[str]:
    both = next((edit for edit in analysis.edits if edit.requests), None)
    if both is not None:
        yield f"No single change is enough: {counted(both.slots, 'slot')} would match {_combined(both)}."
    elif analysis.together:
        yield (
            f"No single change is enough: {counted(analysis.together_slots, 'slot')} would need another answer of "
            f"{' and of '.join(analysis.together)} together."
        )


def _combined(edit: SuggestedEdit) -> str:
    without = f"without {' and '.join(edit.dropped)}" if edit.dropped else ""
    asks = " and ".join(
        f"{_amount(name, amount)}{_of(name)}" for name, amount in sorted(edit.requests.items())
    )
    return " and ".join(filter(None, (without, f"if it asked for {asks}" if asks else "")))


def _asked_job(tried: Tried, ad: Ad) -> str:
    """What the job says of what a slot's clause asks of it."""
    own = {name.lower(): value for name, value in ad.items()}
    names = dict.fromkeys(name.lower() for name in _TARGETS.findall(tried.text))
    said = [f"its {name} is {_text(own.get(name))}" for name in names if not name.startswith("request")]
    return f" ({', '.join(said[:_SHOWN])})" if said else ""


def _text(value: Scalar | None) -> str:
    match value:
        case None:
            return "undefined"
        case Expr(expr=text):
            return text
        case str():
            return f'"{value}"'
        case bool():
            return str(value).lower()
        case _:
            return str(value)


def next_steps(job: str, analysis: Analysis | None) -> str:
    """What to do about a job that no slot can run."""
    command = None if analysis is None else edit_command(job, analysis)
    if command is not None:
        return f"Next: {command}; otherwise it waits until such a machine joins the pool."
    return (
        "Unless such a machine joins the pool the job never runs: change what it asks for with "
        f"kettle edit {job} NAME=EXPRESSION, or remove it with kettle rm {job}."
    )


def edit_command(job: str, analysis: Analysis) -> str | None:
    """
    The command after which slots match that do not now, of those that were tried the one that asks for least.
    """
    if analysis.remedies:
        best = analysis.remedies[0]
        return f"kettle edit {job} {best.attribute}={_plain(best.most)}"
    if analysis.edits:
        edit = analysis.edits[0]
        values = [f"{name}={_plain(amount)}" for name, amount in sorted(edit.requests.items())]
        values += [f"Requirements={edit.requirements}"] if edit.dropped else []
        return f"kettle edit {job} {' '.join(map(quoted, values))}"
    return None


def quoted(word: str) -> str:
    """A word as a shell reads it."""
    return word if _SAFE.fullmatch(word) else "'" + word.replace("'", "'\"'\"'") + "'"


def _remedy(remedy: Remedy, analysis: Analysis) -> str:
    name = remedy.attribute
    asked, most, least = (_amount(name, each) for each in (remedy.asked, remedy.most, remedy.least))
    text = f"{remedy.slots} of {counted(analysis.slots, 'slot')} would match if it asked for {most}{_of(name)} instead of {asked}"
    if remedy.least_slots > remedy.slots:
        text += f", {remedy.least_slots} if it asked for {least}"
    return f"{text}{_LATER if analysis.for_later else ''}."


def _amount(name: str, amount: float) -> str:
    match name.lower():
        case "requestmemory":
            return size(amount * 1024)
        case "requestdisk":
            return size(amount)
        case "requestcpus":
            return counted(int(amount), "core")
        case _:
            return f"{amount:g} {name[len('request') :]}"


def _of(name: str) -> str:
    match name.lower():
        case "requestmemory":
            return " of memory"
        case "requestdisk":
            return " of disk"
        case _:
            return ""


def _plain(amount: float) -> str:
    return f"{amount:.15g}"


def _present(present: Present) -> str:
    if len(present.values) == 1 and not present.others:
        return f"{present.attribute} is {present.values[0][0]}"
    said = ", ".join(f"{value} in {slots}" for value, slots in present.values[:_PRESENT])
    others = present.others + sum(slots for _, slots in present.values[_PRESENT:])
    return f"{present.attribute} is {said}{f' and something else in {others}' if others else ''}"


def table(clauses: Sequence[Tried]) -> tuple[list[tuple[str, str, str, str]], list[str]]:
    """Rows of a table of clauses, and their styles."""
    rows = [
        (
            f"{one.passes} of {one.asked}",
            str(one.only) if one.only else "-",
            "the job's" if one.side == "job" else "the slot's",
            one.text,
        )
        for one in clauses
    ]
    return rows, ["bad" if not one.passes else "good" if one.passes == one.asked else "" for one in clauses]
