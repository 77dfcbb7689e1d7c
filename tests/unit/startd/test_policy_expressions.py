"""The owner's expressions as settings: read once, refused with the place of the mistake."""

from pathlib import Path

import pytest

from kettle.runtime import SettingsError
from kettle_services.startd.domain.state.policy_expressions import DEFAULTS, JobEvaluation, PolicyExpressions
from kettle_services.startd.settings import StartdSettings
from kettle_wire.ads import Ad


def settings(**environ: str) -> StartdSettings:
    return StartdSettings.load(
        "startd", environ={f"KETTLE_STARTD_{name}": text for name, text in environ.items()}
    )


@pytest.mark.parametrize("name", [name for name in DEFAULTS if not name.startswith(("Ma",))])
def test_a_bad_expression_keeps_the_startd_from_starting(name: str) -> None:
    """The sentence says which setting, and where in its text."""
    with pytest.raises(SettingsError) as refusal:
        settings(**{name: "KeyboardIdle > "})

    said = str(refusal.value)
    assert said.startswith(f"KETTLE_STARTD_{name}: is no expression: ")
    assert "line 1, column 16" in said


def test_htcondor_s_mixed_names_are_settings_too() -> None:
    """With underscores, as all settings."""
    with pytest.raises(SettingsError, match="KETTLE_STARTD_MAX_JOB_RETIREMENT_TIME"):
        settings(MAX_JOB_RETIREMENT_TIME="1 +")
    with pytest.raises(SettingsError, match="KETTLE_STARTD_MACHINE_MAX_VACATE_TIME"):
        settings(MACHINE_MAX_VACATE_TIME="1 +")


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("START", "strcatt(Owner) == 1", "there is no function strcatt(); did you mean strcat?"),
        ("START", '"true"', '"true" is not a condition, true or false'),
        ("RANK", '("high")', '("high") is not a number'),
        ("RANK", "{ 1, 2 }", "{ 1, 2 } is not a number"),
        ("WANT_HOLD_REASON", "true", "true is not a text; write it in quotes"),
        ("MODIFY_REQUEST_EXPR", '{"Cpus": "quantise(RequestCpus, 2)"}', "did you mean quantize?"),
        ("SLOT_WEIGHT", "Cpus +", "is no expression"),
        ("UPDATE_INTERVAL", "10m", "it counts seconds, so write 600"),
        ("MEMORY", "8 GB", "it counts MiB, so write 8192"),
        ("UPDATE_INTERVAL", "inf", "Expected `float` <= 1000000000000.0"),
    ],
)
def test_what_can_never_be_meant_is_refused(name: str, text: str, says: str) -> None:
    """
    A function that does not exist, a constant of another type and an amount with a unit are refused with what to write.
    """
    with pytest.raises(SettingsError) as refusal:
        settings(**{name: text})
    assert str(refusal.value).startswith(f"KETTLE_STARTD_{name}: ")
    assert says in str(refusal.value)


def test_a_setting_may_be_a_number_or_a_truth_value(tmp_path: Path) -> None:
    """As one writes it in the file; `continue` is a word of Python's, and a setting all the same."""
    file = tmp_path / "kettle.toml"
    file.write_text(
        '[startd]\nstart = true\nclaim_worklife = 3600\ncontinue = false\npreempt = "MY.Cpus > 3"\n'
    )

    texts = StartdSettings.load("startd", environ={}, toml_path=file).policy

    assert ("true", "3600.0", "false", "MY.Cpus > 3") == tuple(
        texts[name] for name in ("START", "CLAIM_WORKLIFE", "CONTINUE", "PREEMPT")
    )
    assert 3600.0 == JobEvaluation(PolicyExpressions(texts), dict).seconds("CLAIM_WORKLIFE")


def test_settings_go_from_one_process_to_the_next() -> None:
    """The master starts the startd with the settings that it has read."""
    given = settings(CONTINUE="KeyboardIdle > 60", CLAIM_WORKLIFE="-1")

    again = StartdSettings.load("startd", environ=given.environ("startd"))

    assert given.policy == again.policy
    assert "KeyboardIdle > 60" == again.policy["CONTINUE"]


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("TARGET.Owner == MY.Friend", True),
        ("NoSuchThing > 3", False),
        ("1 / 0", False),
        ('"true"', False),
        ("7", True),
        ("0.0", False),
        ("undefined", False),
    ],
)
def test_only_what_is_true_fires(text: str, holds: bool) -> None:
    """Undefined, an error and a string are not true."""
    slot: Ad = {"Friend": "ann"}

    assert holds is JobEvaluation(PolicyExpressions({"PREEMPT": text}), lambda: slot, {"Owner": "ann"}).holds(
        "PREEMPT"
    )


def test_start_is_false_of_the_slot_only_without_the_job() -> None:
    """What depends on the job is not known, and so not false."""
    slot: Ad = {"KeyboardIdle": 5}
    for text, refuses in (
        ("KeyboardIdle > 9", True),
        ('TARGET.Owner == "ann"', False),
        ("KeyboardIdle > 1", False),
    ):
        about = JobEvaluation(PolicyExpressions({"START": text}), lambda: slot, {"Owner": "bob"})
        assert refuses is about.refuses("START")


def test_a_time_that_is_none_is_the_default() -> None:
    """An owner's mistake must not kill jobs at once, nor let them run without end."""
    for text in ('"soon"', "undefined", "1 / 0"):
        about = JobEvaluation(PolicyExpressions({"MachineMaxVacateTime": text}), dict)
        assert 600.0 == about.seconds("MachineMaxVacateTime")


def test_a_policy_of_literals_is_not_asked_about_jobs() -> None:
    """Machines without a policy pay nothing for it."""
    assert not PolicyExpressions().watches
    assert PolicyExpressions({"SUSPEND": "KeyboardIdle < 60"}).watches
    assert PolicyExpressions({"PREEMPT": "true"}).watches
