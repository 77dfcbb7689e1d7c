"""The result of a replay, for people: waiting times and usage, with the change and without it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from kettle.terminal.quantities import counted, duration
from kettle_services.cli.output.plots import Plot

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kettle_services.cli.output.screen import Cell, Screen
    from kettle_services.simulator.comparison import Compared, WhatIf
    from kettle_services.simulator.domain.submitter_sums import Sums

_TITLES: Final = (
    "", "CASE", "BEGUN", "ENDED", "WAITING", "PREEMPTED", "WAIT", "P90", "MEAN", "CORE HOURS", "WEIGHTED", "SHARE", "CHANGE",
)  # fmt: skip
_RIGHT: Final = frozenset(_TITLES[2:])
_CASES: Final = ("recorded", "replayed", "changed")
_DRAWN: Final = 5
"""So many submitters a drawing has, those who used most."""


def show(found: WhatIf, names: Sequence[str], screen: Screen) -> None:
    """Tables, and how far the replay may be believed."""
    span = duration(found.until - found.since)
    screen.say(
        screen.paint(
            f"From {_local(found.since)} to {_local(found.until)} ({span}), played again with", "strong"
        )
    )
    for sentence in found.changes:
        screen.say(f"  {sentence}")
    screen.say()
    some = [one for one in found.submitters if not names or one.name in names]
    _table("SUBMITTER", some, screen)
    if found.groups:
        screen.say()
        _table("GROUP", found.groups, screen)
    screen.say()
    _table("TOTAL", [found.total], screen)
    screen.say()
    _trust(found, screen)


def _table(title: str, compared: Sequence[Compared], screen: Screen) -> None:
    rows: list[list[Cell]] = []
    styles: list[str] = []
    for one in compared:
        for case, sums in zip(_CASES, (one.recorded, one.replayed, one.changed), strict=True):
            change = _change(one.replayed, sums) if case == "changed" else ""
            rows.append([one.name if case == "recorded" else "", case, *_cells(sums), change])
            styles.append("running" if case == "changed" else "")
    screen.table((title, *_TITLES[1:]), rows, styles=styles, right=_RIGHT)


def _cells(sums: Sums) -> list[Cell]:
    return [
        sums.begun, sums.ended, sums.waiting, sums.preempted,
        _span(sums.wait_median), _span(sums.wait_p90), _span(sums.wait_mean),
        f"{sums.core_hours:.4g}", f"{sums.weighted_hours:.4g}", f"{sums.share:.1%}",
    ]  # fmt: skip


def _change(base: Sums, sums: Sums) -> str:
    """The change of the mean wait."""
    if base.wait_mean is None or sums.wait_mean is None:
        return "-"
    if not base.wait_mean:
        return "0 %" if not sums.wait_mean else "longer"
    return f"{sums.wait_mean / base.wait_mean - 1:+.0%}"


def _span(seconds: float | None) -> str:
    return "-" if seconds is None else duration(seconds)


def _trust(found: WhatIf, screen: Screen) -> None:
    trust = found.trust
    screen.say(
        f"How far to believe it: {trust.begun_both} of {counted(trust.begun_recorded, 'job')} that began really also begin "
        f"in the replay without the change,"
    )
    if trust.apart_median is not None:
        order = (
            f", {trust.same_order:.1%} of their pairs in the same order"
            if trust.same_order is not None
            else ""
        )
        screen.say(
            f"half of them within {_span(trust.apart_median)} and nine of ten within {_span(trust.apart_p90)} of the real "
            f"time{order};"
        )
    screen.say(
        f"core hours: {trust.core_hours_recorded:.4g} recorded, {trust.core_hours_replayed:.4g} replayed."
    )
    screen.note("CHANGE is that of the mean wait against the replay without the change.")
    for number, says in (
        (found.estimated, "never ran: others of the same cluster or owner say how long they take"),
        (found.endless, "began and never ended, and nothing says for how long they would have run"),
    ):
        if number:
            screen.note(f"{counted(number, 'job')} {says}.")
    if found.guessed:
        screen.note(f"{counted(found.guessed, 'machine')}: only cores and memory are recorded.")
    if found.changed.refused:
        screen.note(
            f"{counted(found.changed.refused, 'match', 'matches')} that no machine would have accepted."
        )


def plot(found: WhatIf) -> Plot:
    """What those who used most had over time, without the change and with it."""
    used = sorted(
        found.submitters, key=lambda one: -(one.replayed.weighted_hours + one.changed.weighted_hours)
    )
    series = {
        f"{one.name}, {says}": found.usage[case][one.name]
        for one in used[:_DRAWN]
        for case, says in (("replayed", "without"), ("changed", "with"))
    }
    return Plot(
        title="In use without the change and with it, in slot weights", times=found.times, series=series
    )


def _local(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))
