"""Map files and access lists against HTCondor's own code, on random ones."""

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from kettle.auth.mapping import map_file
from kettle.auth.mapping.access_lists import AccessLists, Entry
from kettle.auth.mapping.findings import Place, refusals
from kettle.auth.mapping.levels import Level
from kettle.auth.mapping.names import filled
from kettle.auth.mapping.principals import Address

from . import access_reference as reference

_HERE: Final = Place("config")
_METHODS: Final = ("SCITOKENS", "SSL", "FS")
_TEXTS: Final = (
    "",
    "a",
    "ab",
    "abc",
    "b",
    "B",
    "/a",
    "a b",
    "a/b",
    "aXb",
    "a.b",
    'a"b',
    "https://i,s",
    "a\\b",
    "xyz",
    "bb",
)
_PATTERNS: Final = (
    "a", "b", "abc", "/a", "/^a/", "/b$/", "/^(a)(.*)$/", "/^A$/i", "/.*/", "/^a.b$/", r"/^a\.b$/", r"/^a\/b$/", r"/^a\\.b$/",
    '"a b"', r'"a\"b"', r"/^https:\/\/(i),(s)$/", "/^(a+)b*/U", "/^(b+)/U", r"/^[\/a]+$/", "/^(.)(.)(.)$/", "xyz", r"a\b", "/b/iU", "/^$/",
)  # fmt: skip
_USERS: Final = ("u", r"u\0", r"\1x", r"\2-\1", '"a user"', r"u@\1")
_LEVELS: Final = tuple(level for level in Level if level in reference.LEVELS)
_ENTRIES: Final = (
    "*", "*@p", "ada@p", "ada@*", "a*@p", "eve@q", "*@P", "*/10.0.0.1", "ada@p/10.0.*", "eve@q/10.0.0.0/24", "10.1.0.0/16",
    "10.0.0.0/255.0.0.0", "10.0.0.2", "192.168.*", "*/10.1.0.0/255.255.0.0", "*@*/10.0.0.1", "*@q/*", "ada/10.0.0.1",
)  # fmt: skip
_PEOPLE: Final = ("ada@p", "eve@q", "alf@p", "bob@r")
_ADDRESSES: Final = ("10.0.0.1", "10.0.0.2", "10.0.1.1", "10.1.2.3", "192.168.1.1", "172.16.0.1")


def _missing(pattern: str, user: str) -> bool:
    """Whether a user refers to a group that is not there: that is refused here, and copied as it is there."""
    groups = 0 if pattern[0] != "/" or pattern == "/a" else pattern.count("(")
    return any(f"\\{number}" in user for number in range(groups + 1, 10))


def test_map_files_mean_what_htcondor_reads_in_them(tmp_path: Path) -> None:
    """On 300 random files each credential is who HTCondor's own reader says that it is."""
    chance = random.Random(25)
    questions: list[tuple[str, list[tuple[str, str]]]] = []
    asked = [(method, text) for method in _METHODS for text in _TEXTS if text]
    for number in range(300):
        lines = ["# generated", ""]
        while len(lines) < 12:
            method, pattern, user = chance.choice(_METHODS), chance.choice(_PATTERNS), chance.choice(_USERS)
            if pattern == "/a" or _missing(
                pattern, user
            ):  # HTCondor's expression goes on to the end of the line
                continue
            lines.append(
                chance.choice(("{} {} {}", " {}\t{}   {}  ", "{} {} {} # why")).format(method, pattern, user)
            )
        path = tmp_path / f"{number}.map"
        path.write_text("\n".join(lines))
        questions.append((str(path), asked))
    for (name, _), answers in zip(questions, reference.ask({"maps": questions}), strict=True):
        file, findings = map_file.read(name, Path(name).read_text(), _no_include)
        assert [] == refusals(findings)
        ours = [_name(file, method, text) for method, text in asked]
        assert list(zip(asked, answers, strict=True)) == list(zip(asked, ours, strict=True)), Path(
            name
        ).read_text()


def _name(file: map_file.MapFile, method: str, text: str) -> str | None:
    found = file.find(method, text)
    return None if found is None else filled(found[0].user, found[1])


def _no_include(file: str, name: str) -> list[tuple[str, str]]:
    raise AssertionError(name)


def test_access_lists_decide_as_htcondor_does() -> None:
    """
    Random allow and deny lists give each person from each address the levels that HTCondor's own code gives.
    """
    chance = random.Random(25)
    keys = [*_LEVELS, *(f"{level}_SCHEDD" for level in _LEVELS), "WRITE_STARTD"]
    asked = [(level, address, person) for level in _LEVELS for address in _ADDRESSES for person in _PEOPLE]
    pools: list[tuple[dict[str, list[str]], dict[str, list[str]]]] = [
        (
            {key: chance.sample(_ENTRIES, chance.randint(1, 4)) for key in keys if chance.random() < 0.4},
            {
                key: chance.sample((*_ENTRIES, "ADA@P"), chance.randint(1, 2))
                for key in keys
                if chance.random() < 0.15
            },
        )
        for _ in range(100)
    ]
    answers = reference.ask({"access": [(_settings(keys, *pool), asked) for pool in pools]})
    for (allow, deny), theirs in zip(pools, answers, strict=True):
        lists = AccessLists(_entries(allow), _entries(deny))
        ours = [
            lists.decide(person, level, Address(address), subsystem="SCHEDD").allowed
            for level, address, person in asked
        ]
        differences = [each for each in zip(asked, theirs, ours, strict=True) if each[1] != each[2]]
        assert [] == differences, (allow, deny)


def _settings(
    keys: Sequence[str], allow: Mapping[str, list[str]], deny: Mapping[str, list[str]]
) -> dict[str, str]:
    """All knobs, so that nothing remains of the pool before."""
    return {
        **{f"ALLOW_{key}": ", ".join(allow.get(key, [])) for key in keys},
        **{f"DENY_{key}": " ".join(deny.get(key, [])) for key in keys},
    }


def _entries(lists: Mapping[str, list[str]]) -> dict[str, list[Entry]]:
    return {key: [Entry.read(text, _HERE) for text in entries] for key, entries in lists.items()}


def test_who_is_let_in_is_spelt_as_in_the_list() -> None:
    """
    HTCondor lets in a user whose name differs from the entry by case; such a user is somebody else here.
    """
    asked = [("WRITE", "10.0.0.1", "Ada@p"), ("WRITE", "10.0.0.1", "ada@P")]
    assert [[True, True]] == reference.ask({"access": [({"ALLOW_WRITE": "ada@p"}, asked)]})
    lists = AccessLists(_entries({"WRITE": ["ada@p"]}), {})
    assert [False, True] == [
        lists.decide(user, Level.WRITE, Address("10.0.0.1")).allowed for _, _, user in asked
    ]
