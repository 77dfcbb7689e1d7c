"""Whose jobs an access point may look after."""

import pwd
from pathlib import Path

import pytest

from kettle.accounts.lookup import Accounts, StrangerError, first_person, own_name
from kettle.accounts.rights import Rights

NUMBERS = {"ada": 5000, "root": 0, "daemon": 1, "nobody": 65534, "www-data": 33}


class Directory:
    """Accounts that somebody may change, and how often they were asked about."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.now = 0.0
        self.accounts = Accounts(own="grace", privileged=True, directory=self.find, clock=lambda: self.now)

    def find(self, name: str) -> pwd.struct_passwd:
        self.asked.append(name)
        if "\0" in name:
            raise ValueError("embedded null byte")
        return pwd.struct_passwd((name, "x", NUMBERS[name], NUMBERS[name], "", "/", ""))


@pytest.fixture
def directory() -> Directory:
    return Directory()


def test_ones_own_account_is_served_without_a_look(directory: Directory) -> None:
    """Whatever account that is, and whether the machine knows it or not."""
    assert directory.accounts.look("grace") is None
    assert [] == directory.asked
    assert Accounts().look(own_name()) is None


def test_a_person_has_the_rights_of_the_account(directory: Directory) -> None:
    """Its numbers and its groups."""
    rights = directory.accounts.look("ada")
    assert rights == Rights(5000, 5000, (5000,))


@pytest.mark.parametrize(
    ("owner", "says"),
    [
        ("root", "account of the system (number 0)"),
        ("daemon", "account of the system (number 1)"),
        ("www-data", "account of the system (number 33)"),
        ("nobody", "account of the system (number 65534)"),
        ("eve", "eve, who has no account"),
        ("", "nobody, who has no account"),
        ("../ada", "has no account"),
        ("ada\0", "has no account"),
        ("ada\n", "has no account"),
    ],
)
def test_others_are_refused_with_the_reason(directory: Directory, owner: str, says: str) -> None:
    """Unknown names, names that are none, root and the accounts of the system."""
    with pytest.raises(StrangerError) as caught:
        directory.accounts.look(owner)
    assert says in str(caught.value)


def test_who_is_not_root_serves_the_own_account_only() -> None:
    """The sentence names both accounts."""
    with pytest.raises(StrangerError, match=r"belongs to ada, .* runs as grace"):
        Accounts(own="grace", privileged=False).look("ada")


async def test_what_was_found_is_remembered_for_a_while(directory: Directory) -> None:
    """An account for minutes; that there is none for seconds, since somebody may be making it."""
    for _ in range(2):
        assert await directory.accounts.find("ada") is not None
        with pytest.raises(StrangerError):
            await directory.accounts.find("daemon")
    assert ["ada", "daemon"] == directory.asked
    directory.now = 10.0
    assert await directory.accounts.find("ada") is not None
    with pytest.raises(StrangerError):
        await directory.accounts.find("daemon")
    assert ["ada", "daemon", "daemon"] == directory.asked
    directory.now = 1000.0
    await directory.accounts.find("ada")
    assert "ada" == directory.asked[-1]


@pytest.mark.parametrize(("text", "first"), [("# x\nUID_MIN 500\n", 500), ("UID_MIN x\n", 1000), ("", 1000)])
def test_where_persons_begin_is_the_machines_word(tmp_path: Path, text: str, first: int) -> None:
    """UID_MIN of login.defs, if it makes sense."""
    (tmp_path / "login.defs").write_text(text)
    assert first == first_person(tmp_path / "login.defs")
    assert 1000 == first_person(tmp_path / "none")
