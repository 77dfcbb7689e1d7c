"""What `kettle fairshare` makes of priorities now and of the recorded past."""

import io
import math
from xml.etree import ElementTree as ET

import pytest

from kettle_services.cli.__main__ import main
from kettle_services.cli.commands import fairshare
from kettle_services.cli.output import plots
from kettle_services.cli.output.plots import Plot
from kettle_services.cli.output.screen import Screen
from kettle_services.cli.reports import fair_share
from kettle_services.cli.reports.submitter_samples import Samples
from kettle_wire.commands.negotiator import Priorities, Priority
from kettle_wire.events import Event, PrincipalCharged, PrincipalSet
from kettle_wire.frames import Frame

DAY = 86_400.0


def priority(name: str, effective: float, weight: float = 0.0, group: str = "") -> Priority:
    return Priority(
        name=name, effective=effective, priority=effective / 10, factor=10.0, weight=weight, group=group
    )


NOW = Priorities(
    at=100.0,
    half_life=DAY,
    submitters=[
        priority("ada", 10.0, 3.0),
        priority("bob", 30.0, 1.0),
        priority("phys.eve", 7.0, 4.0, "phys"),
    ],
)


def charged(name: str, since: float, at: float, weight: float) -> PrincipalCharged:
    return PrincipalCharged(principal=name, since=since, at=at, half_life=DAY, slots=weight, weight=weight)


def sampled(moments: list[float], *events: tuple[float, Event]) -> Samples:
    samples = Samples(moments)
    for number, (at, event) in enumerate(events, 1):
        frame = Frame(
            shard="negotiator", number=number, epoch=1, at=int(at * 1e6), position=number, entries=[]
        )
        samples.feed(frame, [event])
    samples.end()
    return samples


def test_shares_are_in_inverse_proportion_to_priority_within_a_group() -> None:
    """10 and 30 without a group: 3/4 and 1/4; eve is alone in hers. Of 8 in use they have 3, 1 and 4."""
    found = {one.name: (one.share, one.part) for one in fair_share.fair_share(NOW).submitters}
    assert {"ada": (0.75, 0.375), "bob": (0.25, 0.125), "phys.eve": (1.0, 0.5)} == found
    (bob,) = fair_share.fair_share(NOW, ["bob"]).submitters
    assert (0.25, 0.125) == (bob.share, bob.part)


def test_the_past_follows_from_the_charges() -> None:
    """
    Ada has 2 cores for a day, which is a half-life: her priority goes from 0.5 half of the way to 2, and back when she rests;
    before her first charge nothing is known, and the factor counts from when it was set.
    """
    samples = sampled(
        [0.5 * DAY, DAY, 1.5 * DAY, 2 * DAY],
        (DAY, charged("ada", 0.0, DAY, 2.0)),
        (DAY, PrincipalSet(principal="ada", setting="factor", value=4.0, at=DAY, by="root")),
        (1.2 * DAY, charged("ada", DAY, DAY, 0.0)),
    )
    past = fair_share.past_of(samples, fair_share.fair_share(NOW), ["ada"])

    assert [None, 2.0, 0.0, 0.0] == past.usage["ada"]
    assert [None, 48.0, 48.0, 48.0] == past.hours["ada"]
    assert [5.0, 5.0 * 0.5**0.5, 2.5] == pytest.approx([n for n in past.priority["ada"] if n is not None])
    assert [None, 1.0, 1.0, 1.0] == past.share["ada"]


def test_shares_of_the_past_are_among_all_although_few_are_shown() -> None:
    """Both have the same priority, so each had half."""
    samples = sampled([9.0], (1.0, charged("ada", 0.0, 1.0, 0.0)), (2.0, charged("bob", 0.0, 1.0, 0.0)))
    assert {"ada": [0.5]} == fair_share.past_of(samples, fair_share.fair_share(NOW), ["ada"]).share


def test_blocks_are_as_high_as_numbers_are_large() -> None:
    """Nothing where nothing is known."""
    assert " ▁▅█" == plots.blocks([None, 0.0, 2.0, 4.0], 4.0)


def test_a_plot_is_an_image_with_a_line_and_a_name_for_each() -> None:
    """Well-formed whatever the name is, and every point is inside of it."""
    plot = Plot(
        title="In <use>", times=[0.0, 60.0, 120.0], series={"<a&b>": [None, 1.0, 4.0], "c": [2.0, 2.0, 0.0]}
    )
    root = ET.fromstring(plots.svg(plot))
    lines = [element for element in root if element.tag.endswith("polyline")]
    assert [2, 3] == [len(line.attrib["points"].split()) for line in lines]
    points = [
        tuple(map(float, point.split(","))) for line in lines for point in line.attrib["points"].split()
    ]
    assert all(0 <= x <= 900 and 0 <= y <= 420 for x, y in points)
    texts = [element.text for element in root if element.tag.endswith("text")]
    assert {"<a&b>", "c", "In <use>", "4"} <= set(texts)


def test_the_largest_comes_first_and_a_plot_of_nothing_is_one() -> None:
    """A scale of zero would be none."""
    past = fair_share.StandingHistory(
        times=[0.0, 1.0], usage={"a": [1.0, None], "b": [1.0, 2.0]}, share={}, priority={}, hours={}
    )
    assert ["b", "a"] == list(fair_share.plot(past, "usage").series)
    assert math.isclose(1.0, Plot(title="", times=[0.0], series={"a": [None]}).most)


@pytest.mark.parametrize("terminal", [True, False])
def test_it_is_a_table_with_a_drawing(*, terminal: bool) -> None:
    """Colours on a terminal only."""

    class Out(io.StringIO):
        def isatty(self) -> bool:
            return terminal

    out = Out()
    past = fair_share.StandingHistory(
        times=[0.0, 1.0], usage={"ada": [1.0, 4.0]}, share={}, priority={}, hours={}
    )
    found = fair_share.fair_share(NOW)
    fairshare.show(
        fair_share.with_past(found, past),
        "usage",
        Screen(out=out, err=io.StringIO(), environ={"TERM": "xterm"}),
    )
    text = out.getvalue()
    assert "75.0%  37.5%       3" in text
    assert "▃" * 20 in text
    assert "█" * 20 in text
    assert terminal == ("\x1b[" in text)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--since", "1d", "--output", "x.png"], "plots are written as SVG; name it x.svg"),
        (["--output", "x.svg"], "say since when, as in --since 1d"),
    ],
)
def test_what_cannot_be_drawn_is_refused(
    words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before the pool is asked."""
    assert 2 == main(["fairshare", *words])
    assert says in capsys.readouterr().err
