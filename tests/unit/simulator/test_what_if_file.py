"""What a file with changes may say, and how it is refused."""

import json
import textwrap
from pathlib import Path

import pytest

from kettle.testing.invented_history import SHARDS, InventedHistory, moment
from kettle_services.cli.commands.what_if import HELP
from kettle_services.cli.output import plots
from kettle_services.cli.output.screen import Screen
from kettle_services.cli.reports import what_if
from kettle_services.negotiator.settings import NegotiatorSettings
from kettle_services.simulator.comparison import compare
from kettle_services.simulator.domain.recording import Recording
from kettle_services.simulator.what_if_file import (
    REPLAYED,
    WORKLIFE,
    Change,
    ChangeError,
    played,
    read,
    rules,
)

BASE = NegotiatorSettings(interval=30.0)


def change(tmp_path: Path, text: str, name: str = "change.toml") -> Change:
    path = tmp_path / name
    path.write_text(text)
    return read(path, BASE, worklife=WORKLIFE)


def test_what_is_named_is_different_and_all_else_stays(tmp_path: Path) -> None:
    """Settings, a factor, machines and the worklife of claims; each is a sentence. JSON says the same."""
    text = (
        "[negotiator]\npriority_halflife = 3600\ngroups = { physics = { quota = 3 } }\n[schedd]\nclaim_worklife = 60\n"
        "[factors]\nalice = 10\n'<physics>' = 20\n[machines]\nscale = 1.5\nuser_preemption = true\n"
        "[[machines.add]]\ncpus = 64\nmemory = 1024\ncount = 2\n"
    )
    found = change(tmp_path, text)
    assert (3600.0, 30.0, 60.0) == (found.settings.priority_halflife, found.settings.interval, found.worklife)
    assert {"alice": 10.0, "<physics>": 20.0} == found.factors
    assert [
        'negotiator.groups: {} -> {"physics":{"quota":3.0}}',
        "negotiator.priority_halflife: 86400.0 -> 3600.0",
        "schedd.claim_worklife: 1200 -> 60",
        "priority factor of <physics>: 20",
        "priority factor of alice: 10",
        "1.5 times as many machines",
        "machines.user_preemption: true",
        "2 machines more of 64 cores and 1024 MiB",
    ] == found.sentences
    tables = {
        "negotiator": {"priority_halflife": 3600, "groups": {"physics": {"quota": 3}}},
        "schedd": {"claim_worklife": 60},
        "factors": {"alice": 10, "<physics>": 20},
        "machines": {
            "scale": 1.5,
            "user_preemption": True,
            "add": [{"cpus": 64, "memory": 1024, "count": 2}],
        },
    }
    assert found.sentences == change(tmp_path, json.dumps(tables), "change.json").sentences


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[negotiator]\npriority_halflife = -1\n", ":2: negotiator.priority_halflife: Expected `float` > 0"),
        ("[negotiator]\npriority_halflife = '1'\n", ":2: negotiator.priority_halflife: Expected `float`"),
        ("[negotiator]\npriority_halfife = 1\n", "did you mean priority_halflife?"),
        ("[negotiator]\ndatabase_url = 'x'\n", ":2: negotiator.database_url: this setting decides nothing"),
        ("[negotiator]\n#\npreemption_rank = '1 +'\n", ":3: negotiator.preemption_rank: preemption_rank is no"),
        ("[negotiator.groups]\na = { quota = 1 }\n'a.b' = { quota = 2 }\n", ":3: negotiator.groups.a.b: the quotas below"),
        ("[negotiator.groups]\n'a.b' = {}\n", "there is no group a"),
        ("[negotiator.groups]\na = { qouta = 1 }\n", "unknown field `qouta`"),
        ("[negotiator.concurrency_limits]\n'1x' = 3\n", ":2: negotiator.concurrency_limits.1x: no job can name"),
        ("[factors]\nbob = 0.5\n", ":2: factors.bob: Expected `float` >= 1"),
        ("[factors]\n'<x>' = 5\n", ":2: factors.<x>: there is no such group"),
        ("[machines]\nstart = 'a ='\n", ":2: machines.start: it is no expression"),
        ("[machines]\nscales = 2\n", "unknown field `scales`"),
        ("[[machines.add]]\ncpus = 0\nmemory = 1\n", ":2: machines.add.0.cpus: Expected `int` >= 1"),
        ("[negotiators]\n", "there is no such table, did you mean negotiator?"),
        ("negotiator = 3\n", "this is a table: [negotiator]"),
        ("[negotiator\n", "change.toml: Expected ']'"),
        ("[negotiator]\ninterval = 30\n", "it changes nothing"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_with_its_place(tmp_path: Path, text: str, says: str) -> None:
    """The sentence begins with the file, and names the line and the place."""
    with pytest.raises(ChangeError) as refusal:
        change(tmp_path, text)
    assert str(refusal.value).startswith(str(tmp_path / "change.toml"))
    assert says in str(refusal.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ChangeError, match="cannot be read: No such file"):
        read(tmp_path / "none.toml", BASE, worklife=WORKLIFE)


def test_the_example_in_the_help_can_be_used(tmp_path: Path) -> None:
    """A copy of it is read completely."""
    example = HELP.split("any of these tables:")[1].split("examples:")[0]
    found = change(tmp_path, textwrap.dedent(example))
    assert 9 == len(found.sentences)
    assert [4] == [one.count for one in found.machines.add]


def test_every_setting_that_counts_is_one() -> None:
    assert set(REPLAYED) <= set(NegotiatorSettings.__struct_fields__)


def test_people_see_all_three_and_the_difference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    One core and two jobs of 60 s: with twice as many machines the mean wait goes from 30 s to 0. One who is in no job is left
    out of the table when another is asked for. The drawing has a line for each of both cases.
    """
    past = InventedHistory()
    past.machine("m", cpus=1)
    past.submit("ada", jobs=2)
    recording = Recording(moment(-5), moment(300), SHARDS)
    for frame in past.frames():
        recording.feed(frame)
    period, other = recording.period(), change(tmp_path, "[machines]\nscale = 2\n")
    by = rules(BASE, worklife=WORKLIFE, factors={})
    found = compare(period, by, played(period, other), by, changes=other.sentences, step=1_000_000)
    what_if.show(found, [], Screen())
    said = capsys.readouterr().out
    lines = [line.split() for line in said.splitlines()]
    assert ["ada", "recorded", "0", "0", "2", "0", "-", "-", "-", "0", "0", "0.0%"] in lines
    assert [
        "replayed", "2", "2", "0", "0", "0", "ms", "1", "min", "0", "s", "30.0", "s", "0.03333", "0.03333", "100.0%",
    ] in lines  # fmt: skip
    changed = next(line for line in lines if line[:1] == ["changed"])
    assert "-100%" == changed[-1]
    what_if.show(found, ["bob"], Screen())
    assert "ada" not in capsys.readouterr().out
    assert 2 == plots.svg(what_if.plot(found)).count("<polyline")
