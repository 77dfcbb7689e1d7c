from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import msgspec
import pytest

from kettle.runtime import Secret, Settings, SettingsError, redact


class ScheddSettings(Settings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    lease: float = 20.0
    shard: int = 0
    capability: Secret = ""
    limits: dict[str, int] = {}
    roles: tuple[str, ...] = ("a",)


class NeedySettings(Settings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: Annotated[str, msgspec.Meta(min_length=1)]


def load(path: Path | None = None, /, **environ: str) -> ScheddSettings:
    return load_from(environ, path)


def load_from(environ: Mapping[str, str], path: Path | None = None) -> ScheddSettings:
    return ScheddSettings.load("schedd", environ={"HOME": "/nonexistent", **environ}, toml_path=path)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "kettle.toml"


def test_no_setting_is_needed() -> None:
    """A service whose settings all have defaults starts without any."""
    assert msgspec.structs.replace(load(KETTLE_HOME="/nonexistent"), home="") == ScheddSettings()


def test_environment_beats_file_and_own_beats_shared(config: Path) -> None:
    """
    The most particular word is the last one: role's variable, shared variable, role's table, shared table.
    """
    config.write_text('[kettle]\npool="t0"\nlog_level="error"\n[schedd]\npool="t1"\nlease=5\nshard=1\n')

    assert load(config).pool == "t1"
    assert load(config, KETTLE_POOL="e0").pool == "e0"
    assert load(config, KETTLE_POOL="e0", KETTLE_SCHEDD_POOL="e1").pool == "e1"
    settings = load(config, KETTLE_SCHEDD_SHARD="2")
    assert (settings.log_level, settings.lease, settings.shard) == ("error", 5.0, 2)


def test_lists_and_tables_are_json_in_the_environment() -> None:
    """A variable can carry a list or a table."""
    settings = load(KETTLE_SCHEDD_LIMITS='{"a": 1}', KETTLE_SCHEDD_ROLES='["x", "y"]')
    assert (settings.limits, settings.roles) == ({"a": 1}, ("x", "y"))


@pytest.mark.parametrize(
    ("variable", "value", "sentence"),
    [
        ("KETTLE_SCHEDD_LESE", "1", "KETTLE_SCHEDD_LESE: unknown setting; did you mean KETTLE_SCHEDD_LEASE?"),
        ("KETTLE_SHARD", "1", "KETTLE_SHARD: unknown setting"),
        ("KETTLE_LOG_LEVLE", "info", "KETTLE_LOG_LEVLE: unknown setting; did you mean KETTLE_LOG_LEVEL?"),
        ("KETTLE_SCHEDD_LEASE", "x", "KETTLE_SCHEDD_LEASE: Expected `float`, got `str`"),
        ("KETTLE_LOG_LEVEL", "loud", "KETTLE_LOG_LEVEL: Invalid enum value 'loud'"),
        ("KETTLE_HEALTH_PORT", "70000", "KETTLE_HEALTH_PORT: Expected `int` <= 65535"),
        (
            "KETTLE_SCHEDD_LIMITS",
            '{"a": "b"}',
            "KETTLE_SCHEDD_LIMITS: Expected `int`, got `str` - at `$[...]`",
        ),
        ("KETTLE_SCHEDD_LIMITS", "{", "KETTLE_SCHEDD_LIMITS: Input data was truncated"),
    ],
)
def test_bad_variable_is_named(variable: str, value: str, sentence: str) -> None:
    """A variable that is misspelt or has a bad value is refused by its name."""
    with pytest.raises(SettingsError) as refusal:
        load_from({variable: value})
    assert str(refusal.value).startswith(sentence)


def test_other_roles_and_reserved_variables_are_left_alone() -> None:
    """One environment serves all roles, and what steers the programs is nobody's setting."""
    assert ScheddSettings() == load(
        KETTLE_STARTD_LESE="1", KETTLE_PG_BIN="/x", KETTLE_LIFELINE_FD="3", KETTLE_JOB_AD="x", PATH="/bin"
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[schedd]\nlese=1", ":2: [schedd] lese: unknown setting; did you mean lease?"),
        (
            "[kettle]\nlease=1",
            ":2: [kettle] lease: unknown setting of all services; it is one of the table [schedd]",
        ),
        ('[schedd]\nlease="1"', ":2: [schedd] lease: Expected `float`, got `str`"),
        ("[shedd]\n", ":1: [shedd] is neither [kettle] nor a service; did you mean schedd?"),
        ("schedd=1", ":1: schedd must be a table, [schedd]."),
        ("\n[schedd", ":2: Expected ']'"),
    ],
)
def test_bad_file_is_named(config: Path, text: str, sentence: str) -> None:
    """A mistake in the file is refused with the file, the table and the name."""
    config.write_text(text)
    with pytest.raises(SettingsError) as refusal:
        load(config)
    assert str(refusal.value).startswith(f"{config}{sentence}")


def test_all_that_is_wrong_is_told_at_once(config: Path) -> None:
    """One reading names every mistake, of the file and of the environment, each in a line with its place."""
    config.write_text("[kettle]\nlog_levle = 1\npool = 3\n[schedd]\nlease = true\nshard = 1\n")
    with pytest.raises(SettingsError) as refusal:
        load(config, KETTLE_SCHEDD_SHARD="x", KETTLE_HOM="y")
    assert [
        f"{config}:2: [kettle] log_levle: unknown setting; did you mean log_level?",
        f"{config}:3: [kettle] pool: Expected `str`, got `int`",
        f"{config}:5: [schedd] lease: Expected `float`, got `bool`",
        "KETTLE_SCHEDD_SHARD: Expected `int`, got `str`",
        "KETTLE_HOM: unknown setting; did you mean KETTLE_HOME?",
    ] == str(refusal.value).splitlines()
    assert 5 == len(refusal.value.problems)


def test_each_value_has_an_origin(config: Path) -> None:
    """A reading knows where each value that is not the default was given, the strongest place of several."""
    config.write_text("[kettle]\npool = 'a'\n\n[schedd]\nshard = 1\nlease = 5\n")
    reading = ScheddSettings.read("schedd", environ={"KETTLE_SCHEDD_LEASE": "6"}, toml_path=config)
    assert {"pool": f"{config}:2", "shard": f"{config}:5", "lease": "KETTLE_SCHEDD_LEASE"} == {
        name: given.origin for name, given in reading.given.items()
    }


def test_missing_file_that_was_asked_for_is_an_error(tmp_path: Path) -> None:
    """KETTLE_CONFIG that leads nowhere is not ignored, no file in the pool's directory is."""
    with pytest.raises(SettingsError, match="cannot read the settings: No such file"):
        load(KETTLE_CONFIG=str(tmp_path / "none.toml"))
    assert load(KETTLE_HOME=str(tmp_path)).home == str(tmp_path)


def test_file_in_the_pools_directory_is_found(tmp_path: Path) -> None:
    """`kettle.toml` in KETTLE_HOME is read without being named."""
    (tmp_path / "kettle.toml").write_text("[schedd]\nshard=7\n")
    assert load(KETTLE_HOME=str(tmp_path)).shard == 7


def test_setting_without_default_must_be_given() -> None:
    """What has no default is asked for by name."""
    with pytest.raises(SettingsError, match=r"^KETTLE_STARTD_NAME: this setting has no default"):
        NeedySettings.load("startd", environ={"HOME": "/nonexistent"})
    assert (
        NeedySettings.load("startd", environ={"HOME": "/nonexistent", "KETTLE_STARTD_NAME": "n"}).name == "n"
    )


def test_secrets_are_not_shown() -> None:
    """Printing settings shows neither passwords nor capabilities, and shows the rest."""
    shown = repr(ScheddSettings(database_url="postgresql://u:pa55@h/d", capability="pa55", pool="p"))
    assert "pa55" not in shown
    assert "database_url='postgresql://u:***@h/d'" in shown
    assert "pool='p'" in shown


def test_redacted_url_keeps_what_is_no_password() -> None:
    """Only the password of a URL is hidden."""
    assert redact("to nats://u:x@h:1,nats://h:2") == "to nats://u:***@h:1,nats://h:2"


def test_settings_travel_as_environment() -> None:
    """What one process passes to another by `environ` loads as the same settings."""
    settings = ScheddSettings(pool="p", lease=1.5, roles=("x", "y"), limits={"a": 1}, log_level="debug")
    environ = settings.environ("schedd")
    assert set(environ) == {
        "KETTLE_POOL", "KETTLE_LOG_LEVEL", "KETTLE_SCHEDD_LEASE", "KETTLE_SCHEDD_LIMITS", "KETTLE_SCHEDD_ROLES",
    }  # fmt: skip
    assert settings == load_from(environ)
