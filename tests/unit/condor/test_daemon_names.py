"""Which daemon a name means."""

import pytest

from kettle_services.condor.arguments.daemon_names import Daemon, meant
from kettle_services.condor.errors import ToolError

SCHEDDS = [
    Daemon("schedd", "ap1.example.org"),
    Daemon("second", "ap1.example.org"),
    Daemon("third", "ap2.example.org"),
    Daemon("Fourth@crowded", "ap3"),
    Daemon("old"),
]


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("schedd", "schedd"),
        ("SECOND", "second"),
        ("schedd@ap1.example.org", "schedd"),
        ("schedd@ap1", "schedd"),
        ("ap2.example.org", "third"),
        ("AP2", "third"),
        ("fourth@crowded", "Fourth@crowded"),
        ("ap3.example.org", "Fourth@crowded"),
        ("old", "old"),
    ],
)
def test_names_of_daemons_and_hosts(said: str, name: str) -> None:
    """Its own name, name and host, or the host alone if that has one; a host by its first part, too."""
    assert name == meant("schedd", said, SCHEDDS)


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ("ap1", r"ap1 may be any of schedd, second: write the whole name"),
        (
            "schedd@ap2",
            r"Can't find address for schedd schedd@ap2: the pool has no such schedd; it has Fourth",
        ),
        ("nobody", r"the pool has no such schedd; it has Fourth@crowded, old, schedd, second, third"),
        ("@", r"no such schedd"),
        ("", r"no such schedd"),
    ],
)
def test_what_is_meant_has_to_be_one(said: str, sentence: str) -> None:
    with pytest.raises(ToolError, match=sentence):
        meant("schedd", said, SCHEDDS)


def test_a_pool_without_such_daemons() -> None:
    with pytest.raises(ToolError, match="it has none now"):
        meant("schedd", "ap1", [])
