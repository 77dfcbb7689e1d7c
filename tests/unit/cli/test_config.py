"""`kettle config`: the whole configuration is checked at once, and each value has an origin."""

import json
from pathlib import Path

import pytest

from kettle.pool.personal_settings import render
from kettle.runtime.settings_problems import Problem
from kettle.submit.known_attributes import KnownAttributes
from kettle_services.cli.__main__ import main
from kettle_services.cli.configuration.check import check
from kettle_services.cli.configuration.services import SETTINGS, of_host

NOWHERE = {"KETTLE_HOME": "/nonexistent"}


def checked(path: Path, text: str, **environ: str) -> list[str]:
    path.write_text(text)
    return [f"{'warning ' * each.warning}{each}" for each in check({**NOWHERE, **environ}, path)]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "kettle.toml"


def test_what_a_pool_begins_with_is_right(file: Path) -> None:
    """Neither the defaults nor the file of a personal pool have so much as a warning."""
    assert [] == check(NOWHERE)
    assert [] == checked(file, render({}, pool_id="00ff"))


def test_all_services_are_checked_at_once(file: Path) -> None:
    """
    Mistakes in any table and variable are told together, those of daemons that do not run here too, with the refusals first.
    """
    text = (
        "[kettle]\nlog_level = 'loud'\n[startd]\nstart = 'KeybordIdle > 3'\nrank = '1 +'\n"
        "[negotiator]\ninterval = 0\n[schedd]\nlease = 0\n"
        "[[schedd.system_periodic_hold]]\nexpression = 'true'\n"
        "[[schedd.system_periodic_hold]]\nexpression = 'NumJobStart > 3'\n"
        "[master]\ndaemon_list = ['schedd']\n"
    )
    said = checked(file, text, KETTLE_COLLECTOR_NAM="x")
    assert [
        f"{file}:2: [kettle] log_level: Invalid enum value 'loud'",
        f"{file}:5: [startd] rank: is no expression: expected an operand, found the end, at line 1, column 4: '1 +'",
        f"{file}:7: [negotiator] interval: Expected `float` > 0.0",
        f"{file}:9: [schedd] lease: Expected `float` > 0.0",
        "KETTLE_COLLECTOR_NAM: unknown setting; did you mean KETTLE_COLLECTOR_NAME?",
    ] == sorted(said, key=lambda line: (line.startswith("K"), line))


def test_attributes_that_nobody_knows_are_warned_of(file: Path) -> None:
    """With the nearest known name; those that the configuration itself makes are known."""
    text = (
        "[startd]\nstart = 'KeybordIdle > 3 && TARGET.Rackk == MY.Rack && [a = 1].a == 1'\n"
        "attributes = { Rack = 'r7' }\nrank = 'TARGET.RequestLicenses * TARGET.ImageSize'\n"
        "machine_resources = { Licenses = 3 }\n"
    )
    assert [
        f"warning {file}:2: [startd] start: no ad of a job or a machine is known to have KeybordIdle; did you mean KeyboardIdle?",
        f"warning {file}:2: [startd] start: no ad of a job or a machine is known to have Rackk; did you mean Rack?",
    ] == checked(file, text)


def test_times_that_do_not_fit_together_are_warned_of(file: Path) -> None:
    """A machine whose ad is repeated more seldom than it is forgotten would come and go."""
    [said] = checked(file, "[collector]\nclassad_lifetime = 100.0\n[startd]\nupdate_interval = 200.0\n"
                     "[schedd]\nad_interval = 50.0\n[negotiator]\nad_interval = 50.0\n[master]\nupdate_interval = 50.0\n")  # fmt: skip
    assert said.startswith(f"warning {file}:4: [startd] update_interval: ads are repeated after 200 s")
    [said] = checked(file, "[schedd]\nlease = 200.0\n")
    assert (
        f"warning {file}:2: [schedd] lease: claims are renewed after 300 s (alive_interval), and end before that"
        == said
    )


def test_what_is_not_there_is_warned_of(file: Path) -> None:
    """Programs and files that a machine needs."""
    text = (
        "[startd]\ntransfer_plugins = ['/nowhere/plugin', '/bin/sh']\ndiscovery = ['/nowhere/gpus', '/nothing']\n"
        "[accounting]\nstore_ca = '/nowhere/ca'\n"
    )
    assert [
        f"warning {file}:2: [startd] transfer_plugins: there is no /nowhere/plugin on this machine",
        f"warning {file}:3: [startd] discovery: there is no /nowhere/gpus on this machine",
        f"warning {file}:5: [accounting] store_ca: there is no /nowhere/ca on this machine",
    ] == sorted(checked(file, text))


def test_a_daemon_of_several_has_its_own_variables(file: Path) -> None:
    """What the master gives to one entry of the daemon list is checked with that one."""
    text = (
        '[master]\ndaemon_list = ["schedd.a", "schedd.b"]\n'
        '[master.environment."schedd.b"]\nKETTLE_SCHEDD_LEASE = "soon"\n'
    )
    assert ["KETTLE_SCHEDD_LEASE: Expected `float`, got `str`"] == checked(file, text)
    names = {each.daemon: each.reading.given.get("name") for each in of_host(NOWHERE, file)}
    assert "a" == getattr(names["schedd.a"], "value", None)


def test_the_command_says_so(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Status 1 for refusals, 0 for warnings; JSON has the same."""
    file.write_text("[startd]\nstart = 'Foo'\nmemory = '8 GB'\n")
    assert 1 == main(["config", "check", str(file)])
    assert f"{file}:3: [startd] memory" in capsys.readouterr().err
    assert 1 == main(["config", "check", str(file), "--json"])
    [refusal] = json.loads(capsys.readouterr().out)
    assert (False, f"{file}:3: [startd] memory") == (refusal["warning"], refusal["where"])
    file.write_text("[startd]\nstart = 'Foo'\n")
    assert 0 == main(["config", "check", str(file)])
    said = capsys.readouterr()
    assert ("The configuration is right.\n", True) == (said.out, said.err.startswith("warning: "))
    assert 1 == main(["config", "check", "/nonexistent"])


def test_each_value_is_shown_with_its_origin(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The strongest place counts, what is shared stands once, and no password is shown."""
    file.write_text("[kettle]\npool = 'p'\nlog_level = 'error'\n[schedd]\nlog_level = 'debug'\nlease = 400\n")
    monkeypatch.setenv("KETTLE_SCHEDD_LEASE", "500")
    monkeypatch.setenv("KETTLE_DATABASE_URL", "postgresql://ada:secret@host/kettle")

    assert 0 == main(["config", "show", "--json", "--changed", "--file", str(file)])

    shown = {(each["daemon"], each["setting"]): each for each in json.loads(capsys.readouterr().out)}
    assert {
        ("kettle", "pool"): ("p", f"{file}:2"),
        ("kettle", "log_level"): ("error", f"{file}:3"),
        ("kettle", "database_url"): ("postgresql://ada:***@host/kettle", "KETTLE_DATABASE_URL"),
        ("schedd", "log_level"): ("debug", f"{file}:5"),
        ("schedd", "lease"): (500.0, "KETTLE_SCHEDD_LEASE"),
    } == {key: (each["value"], each["origin"]) for key, each in shown.items() if key != ("kettle", "home")}
    assert 0 == main(["config", "show", "--json", "shadow", "--file", str(file)])
    assert {"shadow"} == {each["daemon"] for each in json.loads(capsys.readouterr().out)}
    assert 2 == main(["config", "show", "shedow", "--file", str(file)])
    assert "did you mean shadow?" in capsys.readouterr().err


def test_every_service_with_settings_is_checked() -> None:
    """A new service cannot be forgotten."""
    services = Path(__file__).parents[3] / "services" / "kettle_services"
    assert {path.parent.name for path in services.glob("*/settings.py")} == set(SETTINGS)


def test_documented_attributes_are_known() -> None:
    """Also those of which only the shape is known, in any spelling."""
    known = KnownAttributes()
    assert all(name in known for name in ("requestgpus", "totalslotcpus", "machineattrcpus0", "keyboardidle"))
    assert "keybordidle" not in known


def test_a_problem_is_one_line() -> None:
    """Place first, as editors read it."""
    assert "f.toml:3: [a] b: is wrong" == str(Problem("f.toml:3: [a] b", "is wrong"))


def test_up_starts_nothing_beside_a_mistake(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All mistakes are told at once, and the directory is as it was."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "kettle.toml").write_text("[startd]\nstart = '1 +'\n[schedd]\nlese = 1\n")
    assert 1 == main(["up", "--home", str(home)])
    said = capsys.readouterr().err
    assert "kettle.toml:2: [startd] start: is no expression" in said
    assert "kettle.toml:4: [schedd] lese: unknown setting" in said
    assert "nothing was started" in said
    assert ["kettle.toml"] == [each.name for each in home.iterdir()]


RICH = """
[startd]
start = "TARGET.Owner == \\"ann\\""
continue = false
claim_worklife = 60
slot_types = [{ count = 2, cpus = "25%", resources = { gpus = 1 } }]
machine_resources = { licenses = 4, gpus = ["0", "1"] }
modify_request_expr = { Memory = "quantize(RequestMemory, {512})" }
attributes = { Rack = "r7", Speed = 2.5 }
job_hooks = { x = { prepare_job = ["/opt/prepare", "--fast"] } }
[schedd]
accounting_groups = { phys = ["ada", "bob"] }
job_transforms = [{ name = "Big", transform = "SET Big true" }]
submit_requirements = [{ name = "mem", expression = "RequestMemory < 5", reason = '"no"' }]
system_periodic_hold = [{ expression = "NumJobStarts > 10", name = "runs", subcode = "3" }]
[negotiator]
groups = { phys = { quota = 10 }, "phys.higgs" = { quota_dynamic = 0.5 } }
concurrency_limits = { matlab = 10 }
[master]
daemon_list = ["schedd.ap1", "startd"]
environment = { "schedd.ap1" = { KETTLE_SCHEDD_LEASE = "500" } }
"""


def test_what_is_in_use_can_be_used_again(file: Path) -> None:
    """The settings of each service, as it keeps them beside its work, make it the same settings again."""
    file.write_text(RICH)
    for each in of_host(NOWHERE, file):
        role, settings = each.reading.role, each.reading.settings()
        again = type(settings).read_from(role, settings.environ(role), None)
        assert [] == again.problems
        assert settings.environ(role) == again.settings().environ(role), role
