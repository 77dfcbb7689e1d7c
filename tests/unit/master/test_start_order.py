from itertools import chain
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kettle_services.master.domain.disk_space import shortage
from kettle_services.master.domain.start_order import (
    DAEMON_LIST,
    NEEDS_DATABASE,
    Instance,
    shards,
    stop_stages,
)


def test_work_ends_before_what_records_it() -> None:
    """The machine stops first, then the submit side, then the queue, then everybody else in reverse order."""
    assert [
        ["startd"],
        ["shadow"],
        ["schedd"],
        ["gateway", "accounting", "sessions", "dagman", "negotiator", "collector"],
    ] == stop_stages(DAEMON_LIST)


@given(st.lists(st.sampled_from([*DAEMON_LIST, "gateway", "scaler"]), unique=True))
def test_everything_is_stopped_once(daemons: list[str]) -> None:
    """Whatever is in the list is stopped exactly once."""
    assert sorted(daemons) == sorted(chain.from_iterable(stop_stages(daemons)))


def test_those_that_stand_by_stop_with_the_one_that_works() -> None:
    """Every schedd belongs to the stage of the schedds, whatever its name and number."""
    daemons = ["schedd", "schedd.ap1", "schedd.ap1#2", "collector", "startd"]
    assert [["startd"], ["schedd", "schedd.ap1", "schedd.ap1#2"], ["collector"]] == stop_stages(daemons)


@pytest.mark.parametrize(
    ("text", "instance", "variables"),
    [
        ("schedd", Instance("schedd"), {}),
        ("schedd.ap1", Instance("schedd", "ap1"), {"KETTLE_SCHEDD_NAME": "ap1"}),
        ("schedd.ap.1#12", Instance("schedd", "ap.1", 12), {"KETTLE_SCHEDD_NAME": "ap.1"}),
        (
            "shadow.ap1",
            Instance("shadow", "ap1"),
            {"KETTLE_SHADOW_NAME": "ap1", "KETTLE_SHADOW_SCHEDD": "ap1"},
        ),
        ("negotiator#2", Instance("negotiator", "", 2), {}),
    ],
)
def test_an_entry_of_the_daemon_list_says_role_name_and_number(
    text: str, instance: Instance, variables: dict[str, str]
) -> None:
    """The process is told the name by the settings of its role."""
    assert instance == Instance.parse(text)
    assert variables == instance.variables()


@pytest.mark.parametrize("text", ["", ".ap1", "schedd.", "schedd#", "schedd#1", "schedd#x", "schedd.ap1#-2"])
def test_what_is_no_entry_is_refused(text: str) -> None:
    """The sentence shows the entry and how one looks."""
    with pytest.raises(ValueError, match="ROLE"):
        Instance.parse(text)


def test_several_processes_of_one_name_own_one_shard() -> None:
    """Rights on the bus are given for each shard once."""
    owned = shards(["schedd", "schedd#2", "schedd.ap1", "schedd.ap1#2", "negotiator", "negotiator#2"])
    assert {"schedd": ("schedd.schedd", "schedd.ap1"), "negotiator": ("negotiator",)} == owned


def test_the_worker_side_has_no_way_into_the_database() -> None:
    """A startd or a shadow is never given the database's URL."""
    assert not NEEDS_DATABASE & {"startd", "shadow", "starter"}


def test_a_full_disk_is_a_sentence() -> None:
    """Too little room is refused with what there is, what is needed and which setting says so."""
    sentence = shortage(Path("/home/k"), free_bytes=5 << 20, minimum_bytes=128 << 20)
    assert "/home/k" in sentence
    assert "5 MiB" in sentence
    assert "128 MiB" in sentence
    assert "minimum_disk_mib" in sentence
    assert shortage(Path("/home/k"), free_bytes=128 << 20, minimum_bytes=128 << 20) == ""
