from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kettle.auth.mapping.findings import Place
from kettle.bus.ports import Served
from kettle.runtime import Settings, SettingsError
from kettle.runtime.authorizer import Authorizer, SettingPlaces
from kettle.runtime.settings_problems import SettingsFile
from kettle_wire.commands.negotiator import QUERY_PRIORITIES, RESET_USAGE
from kettle_wire.commands.queue import SUBMIT
from kettle_wire.endpoint import Endpoint
from kettle_wire.identity import user

FILE = """
[authorization]
domain = "pool"

[authorization.allow]
READ = ["*"]
WRITE = [
    "ada@*",
    "*@physics",   # all of them
]
ADMINISTRATOR_SCHEDD = ["root@pool"]
WRITE_NEGOTIATOR = []

[authorization.deny]
WRITE = ["eve@*"]

[negotiator]
"""


async def never(request: object, caller: object) -> Any:
    raise AssertionError(request, caller)


def ask(
    path: Path, role: str, endpoint: Endpoint[Any, Any], name: str, administrators: Sequence[str] = ()
) -> str:
    settings = Settings.load(role, environ={}, toml_path=path)
    decides = Authorizer(role, lambda: settings.authorization, SettingPlaces(path))
    return decides(Served(endpoint, never, lambda: administrators), user(name))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "kettle.toml"
    path.write_text(FILE)
    return path


def test_lists_say_who_may_send_which_command(path: Path) -> None:
    """Queries take READ, other commands of people WRITE; a higher level of the service is enough."""
    assert "" == ask(path, "schedd", SUBMIT, "ada")
    assert "" == ask(path, "schedd", SUBMIT, "root")
    assert "" == ask(path, "negotiator", QUERY_PRIORITIES, "anybody")
    assert "" == ask(path, "negotiator", RESET_USAGE, "linus", ["linus"])
    assert "" == ask(path, "schedd", SUBMIT, "linus", ["linus"])


@pytest.mark.parametrize(
    ("role", "endpoint", "name", "why"),
    [
        (
            "schedd",
            SUBMIT,
            "eve",
            "eve@pool has not the level WRITE, which schedd.submit takes: denied by {}:15: deny WRITE = eve@*",
        ),
        (
            "schedd",
            SUBMIT,
            "bob",
            (
                "bob@pool has not the level WRITE, which schedd.submit takes: allow.WRITE of [authorization] ({}:7) has no "
                "entry for bob@pool, and bob@pool has no level that implies it"
            ),
        ),
        (
            "negotiator",
            RESET_USAGE,
            "ada",
            (
                "ada@pool has not the level ADMINISTRATOR, which negotiator.reset_usage takes: [authorization] has no "
                "allow.ADMINISTRATOR, and ada@pool has no level that implies it, and ada is not in administrators of [negotiator]"
            ),
        ),
    ],
)
def test_a_refusal_names_who_level_rule_and_what_is_missing(
    path: Path, role: str, endpoint: Endpoint[Any, Any], name: str, why: str
) -> None:
    """The line is that of the entry, or of the list in which one is missing."""
    assert why.format(path) == ask(path, role, endpoint, name)


def test_a_line_is_looked_up_when_it_is_named(path: Path) -> None:
    """
    What is written above a rule after the service has read it moves the line; what is gone is named by its setting.
    """
    settings = Settings.load("schedd", environ={}, toml_path=path)
    decides = Authorizer("schedd", lambda: settings.authorization, SettingPlaces(path))
    served = Served(SUBMIT, never)
    path.write_text(f"\n\n{FILE}")
    assert f"denied by {path}:17: " in decides(served, user("eve"))
    path.unlink()
    assert "denied by [authorization] deny.WRITE: deny WRITE = eve@*" in decides(served, user("eve"))


class CountedPlaces(SettingPlaces):
    """How often a line is looked up."""

    looked_up = 0

    def place(self, keys: Sequence[str], text: str = "") -> Place:
        self.looked_up += 1
        return super().place(keys, text)


def test_lists_are_made_once_for_each_group_of_administrators(path: Path) -> None:
    """
    Endpoints take turns, and who is refused again costs no look at the lines, until the file or what it says is another.
    """
    settings = [Settings.load("negotiator", environ={}, toml_path=path).authorization]
    places = CountedPlaces(path)
    decides = Authorizer("negotiator", lambda: settings[0], places)
    linus, grace = (Served(RESET_USAGE, never, partial(tuple, [name])) for name in ("linus", "grace"))
    looked_up: list[int] = []
    for _ in range(3):
        assert ["", ""] == [decides(linus, user("linus")), decides(grace, user("grace"))]
        assert "linus is not in administrators" in decides(grace, user("linus"))
        assert "grace is not in administrators" in decides(linus, user("grace"))
        looked_up.append(places.looked_up)
    once = looked_up[0]
    assert 0 < once
    assert [once] * 3 == looked_up

    path.write_text(f"\n\n{FILE}")
    assert "grace is not in administrators" in decides(linus, user("grace"))
    assert once < places.looked_up

    settings[0] = msgspec.structs.replace(settings[0], deny={"ADMINISTRATOR": ("linus@*",)})
    assert "denied by" in decides(linus, user("linus"))
    assert "" == decides(grace, user("grace"))


def test_without_lists_everybody_who_is_let_in_may_submit(tmp_path: Path) -> None:
    """A deny list alone takes away, and leaves the rest open; an allow list for READ closes WRITE too."""
    path = tmp_path / "kettle.toml"
    path.write_text("")
    assert "" == ask(path, "schedd", SUBMIT, "eve")
    assert "eve is not in administrators of [negotiator]" in ask(path, "negotiator", RESET_USAGE, "eve")
    path.write_text('[authorization]\ndeny.WRITE = ["eve@*"]')
    assert ["", ""] == [ask(path, "schedd", SUBMIT, "ada"), ask(path, "negotiator", QUERY_PRIORITIES, "eve")]
    assert "denied by" in ask(path, "schedd", SUBMIT, "eve")
    path.write_text('[authorization]\nallow.READ = ["*@*"]')
    assert "has no allow.WRITE" in ask(path, "schedd", SUBMIT, "ada")
    path.write_text('[authorization]\nallow.WRITE_STARTD = ["ada@*"]')
    assert "" == ask(path, "schedd", SUBMIT, "eve")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            "[authorization]\nallow.WRIT = []",
            ":2: [authorization] allow.WRIT: 'WRIT' is no level, and no level with a service behind it; did you mean WRITE?",
        ),
        (
            "[authorization.deny]\nREAD = ['a b']",
            ":2: [authorization] deny.READ: 'a b' is no entry: write user@domain",
        ),
        ("[authorization]\nallow.READ = 'x'", ":1: [authorization]: Expected `array`, got `str`"),
        (
            "[kettle.authorization]\ndomain = 'x'",
            ": [kettle] authorization: write it as a table of its own, [authorization]",
        ),
        ("[schedd]\nauthorization = 1", ":2: [schedd] authorization: write it as a table of its own"),
        (
            "[authorisation]\n",
            "[authorisation] is neither [kettle] nor a service; did you mean authorization?",
        ),
        ("[authorization]\nallows = {}", ":1: [authorization]: Object contains unknown field `allows`"),
    ],
)
def test_a_list_that_cannot_be_right_is_refused(tmp_path: Path, text: str, why: str) -> None:
    """Each service refuses the table with file and line."""
    path = tmp_path / "kettle.toml"
    path.write_text(text)
    with pytest.raises(SettingsError) as refused:
        Settings.load("schedd", environ={}, toml_path=path)
    assert why in str(refused.value)


def test_the_table_travels_in_a_variable(path: Path) -> None:
    """A service that hears its settings as variables has the same lists."""
    settings = Settings.load("schedd", environ={}, toml_path=path)
    assert settings == Settings.load("schedd", environ=settings.environ("schedd"))


def test_an_entry_has_the_line_on_which_it_is_written(path: Path) -> None:
    """In a list over several lines each text has its own."""
    file = SettingsFile.read(path)
    keys = ("authorization", "allow", "WRITE")
    assert [7, 8, 9, None] == [file.line_of(keys, each) for each in ("", "ada@*", "*@physics", "root@pool")]
    assert file.line_of(("authorization", "allow", "CONFIG"), "ada@*") is None
    inline = SettingsFile(
        path, '\n[authorization]\nallow = { "READ" = ["a@b"], "WRITE" = ["ada@*"] }\ndomain = "c"\n'
    )
    assert [3, None] == [inline.line_of(keys, each) for each in ("ada@*", "c")]
