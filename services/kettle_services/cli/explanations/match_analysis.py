"""
Why an idle job waits, and the nearest thing that would change it: what the negotiator knows, as sentences.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kettle_services.cli.output.quantities import counted, size

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kettle_wire.commands.negotiator import Analysis, Present, Remedy, Tried
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
_REQUESTS: Final = {
    "requestcpus": "request_cpus",
    "requestmemory": "request_memory",
    "requestdisk": "request_disk",
}


def turn(rejection: Rejection, able: int, slots: int) -> Iterator[str]:
    """What a job waits for that some slots could run."""
    got = f"; of {rejection.asked} like it {rejection.given} got one in that cycle" if rejection.given else ""
    yield f"{able} of {counted(slots, 'slot')} could run it{got}."
    yield _waits(rejection)
    for held in rejection.withheld:
        yield (
            f"{counted(held.slots, 'slot')} of others would suit, which do not make room: {_RULES.get(held.rule, held.rule)}."
        )


def _waits(rejection: Rejection) -> str:
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
            return "It waits for its turn: those that could run it are taken."


def ways_out(analysis: Analysis) -> Iterator[str]:
    """What would let more slots run it, the nearest first."""
    for remedy in analysis.remedies[:_REMEDIES]:
        yield _remedy(remedy, analysis)
    for tried in analysis.clauses:
        if tried.only and tried.side == "job" and tried.present:
            yield (
                f"{counted(tried.only, 'slot')} more would match without the clause {tried.text}; there "
                f"{' and '.join(_present(each) for each in tried.present)}."
            )
    if analysis.together and not analysis.remedies:
        yield (
            f"No single change is enough: {counted(analysis.together_slots, 'slot')} would match without "
            f"{' and '.join(analysis.together)} together."
        )


def next_steps(job: str, analysis: Analysis | None) -> str:
    """What to do about a job that no slot can run."""
    if analysis is not None and analysis.remedies:
        best = analysis.remedies[0]
        return (
            f"Next: kettle rm {job}, and submit it again with {_command(best)} = {_plain(best.most)} or less; otherwise it "
            "waits until such a machine joins the pool."
        )
    return "Unless such a machine joins the pool the job never runs: remove it, and submit one that asks for what exists."


def _remedy(remedy: Remedy, analysis: Analysis) -> str:
    asked, most, least = (_amount(remedy, each) for each in (remedy.asked, remedy.most, remedy.least))
    text = f"{remedy.slots} of {counted(analysis.slots, 'slot')} would match if it asked for {most}{_of(remedy)} instead of {asked}"
    if remedy.least_slots > remedy.slots:
        text += f", {remedy.least_slots} if it asked for {least}"
    return f"{text}."


def _amount(remedy: Remedy, amount: float) -> str:
    match remedy.attribute.lower():
        case "requestmemory":
            return size(amount * 1024)
        case "requestdisk":
            return size(amount)
        case "requestcpus":
            return counted(int(amount), "core")
        case _:
            return f"{amount:g} {remedy.attribute[len('request') :]}"


def _of(remedy: Remedy) -> str:
    match remedy.attribute.lower():
        case "requestmemory":
            return " of memory"
        case "requestdisk":
            return " of disk"
        case _:
            return ""


def _command(remedy: Remedy) -> str:
    key = remedy.attribute.lower()
    return _REQUESTS.get(key) or f"request_{key.removeprefix('request')}"


def _plain(amount: float) -> str:
    return f"{amount:.15g}"


def _present(present: Present) -> str:
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
