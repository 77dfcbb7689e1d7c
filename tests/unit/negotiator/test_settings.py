"""What a negotiator refuses to start with, and to take over while it runs."""

from pathlib import Path

import pytest

from kettle.runtime.settings_problems import SettingsError
from kettle_services.negotiator.settings import NegotiatorSettings

HEAD = "[kettle]\npool = 'p'\n\n[negotiator]\ninterval = 60.0\n"


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ('[negotiator.groups."physics.higgs"]\nquota = 5\n', 6, "no group physics"),
        ("groups.a.quota = 3\n[negotiator.groups.'a.b']\nquota = 4\n", 7, "4 together, more than its own 3"),
        ('preemption_requirements = "RemoteUserPrio >"\n', 6, "preemption_requirements: is no expression"),
        ('group_sort_expr = "1 +"\n', 6, "group_sort_expr: is no expression"),
        ("concurrency_limits.Matlab = 20\nconcurrency_limits.matlab = 5\n", 7, "matlab is there twice"),
        ("concurrency_limits.my-licence = 5\n", 6, "no job can name 'my-licence'"),
        ('concurrency_limits."a.b.c" = 5\n', 6, "no job can name 'a.b.c'"),
        ('concurrency_limit_defaults."db.x" = 5\n', 6, "no job can name 'db.x'"),
    ],
)
def test_a_refusal_names_file_and_line(tmp_path: Path, text: str, line: int, says: str) -> None:
    """
    What has the right type and makes no sense is refused as everything else, with the line in which it stands.
    """
    file = tmp_path / "kettle.toml"
    file.write_text(HEAD + text)
    with pytest.raises(SettingsError, match=says) as refused:
        NegotiatorSettings.load("negotiator", environ={}, toml_path=file)
    assert str(refused.value).startswith(f"{file}:{line}: ")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("concurrency_limits.x = nan\n", "concurrency_limits: Expected `float` >= 0"),
        ("default_prio_factor = inf\n", "default_prio_factor: Expected `float` <= 1e.18"),
        ("groups.a.prio_factor = inf\n", "groups: Expected `float` <= 1e.18"),
    ],
)
def test_numbers_are_finite(tmp_path: Path, text: str, says: str) -> None:
    """
    What cannot be counted with, and what an administrator could not set by a command either, is refused.
    """
    file = tmp_path / "kettle.toml"
    file.write_text(HEAD + text)
    with pytest.raises(SettingsError, match=says):
        NegotiatorSettings.load("negotiator", environ={}, toml_path=file)


def test_a_variable_is_named_too() -> None:
    """Groups in the environment are JSON; what is wrong with them names the variable."""
    environ = {"KETTLE_NEGOTIATOR_GROUPS": '{"a.b": {"quota": 1}}'}
    with pytest.raises(SettingsError, match=r"KETTLE_NEGOTIATOR_GROUPS: the group a\.b has no parent"):
        NegotiatorSettings.load("negotiator", environ=environ)
    good = NegotiatorSettings.load(
        "negotiator",
        environ={"KETTLE_NEGOTIATOR_GROUPS": '{"a": {"quota_dynamic": 0.5, "autoregroup": true}}'},
    )
    assert (0.5, True) == (
        good.group_policy.tree.groups[1].quota_dynamic,
        good.group_policy.tree.groups[1].autoregroup,
    )
