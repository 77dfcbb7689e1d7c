"""The table of masters and their daemons."""

import argparse
import io

import pytest

from kettle_services.cli.actions.daemons import read_words
from kettle_services.cli.errors import UsageError
from kettle_services.cli.output.screen import Screen
from kettle_services.cli.tables.daemons import show_masters
from kettle_wire.ads import Ad

AD: Ad = {
    "MyType": "DaemonMaster",
    "Name": "node17",
    "MasterPid": 7,
    "DaemonStartTime": 100,
    "DaemonList": "MASTER, schedd.ap1#2, startd",
    "KettleVersion": "1.0",
    "SCHEDD_AP1_2_State": "Standby",
    "SCHEDD_AP1_2_Pid": 9,
    "SCHEDD_AP1_2_StartTime": 100,
    "SCHEDD_AP1_2_Restarts": 2,
    "SCHEDD_AP1_2_Hangs": 1,
    "SCHEDD_AP1_2_LastExit": "signal 6 (hung)",
    "STARTD_State": "Off",
}


def shown(*ads: Ad) -> tuple[list[str], str]:
    out, err = io.StringIO(), io.StringIO()
    show_masters(ads, Screen(out=out, err=err, environ={}))
    return out.getvalue().splitlines(), err.getvalue()


def test_each_daemon_has_a_row_below_its_master() -> None:
    """
    In the order of the daemon list, with what its attributes say; a daemon that does not run has no process.
    """
    (titles, master, schedd, startd), _ = shown(AD)
    assert ["HOST", "DAEMON", "STATE", "PID"] == titles.split()[:4]
    assert ["node17", "master", "Running", "7"] == master.split()[:4]
    assert ["schedd.ap1#2", "Standby", "9"] == schedd.split()[:3]
    assert schedd.split()[4:] == ["2", "1", "signal", "6", "(hung)"]
    assert ["startd", "Off", "-", "-"] == startd.split()[:4]


def test_a_version_that_waits_is_told() -> None:
    """What runs and what would, beside the table."""
    assert "node17 runs Kettle 1.0; 1.1 is installed." in shown({**AD, "NewVersion": "1.1"})[1]
    assert "installed" not in shown(AD)[1]


def test_no_master_is_a_sentence() -> None:
    """An empty table says nothing."""
    assert (["No master has told of itself."], "") == shown()


@pytest.mark.parametrize(
    ("words", "daemon", "host", "daemons"),
    [
        ([], [], "", []),
        (["negotiator"], [], "", ["negotiator"]),
        (["schedd.ap1#2", "node17", "startd"], [], "node17", ["schedd.ap1#2", "startd"]),
        (["node17.example.org"], [], "node17.example.org", []),
        (["schedd"], ["startd"], "schedd", ["startd"]),
    ],
)
def test_a_word_is_a_daemon_or_a_host(
    words: list[str], daemon: list[str], host: str, daemons: list[str]
) -> None:
    """`kettle restart negotiator` means the daemon; beside --daemon a host may be called what it likes."""
    arguments = argparse.Namespace(words=words, daemon=daemon)
    read_words(arguments)
    assert (host, daemons) == (arguments.host, arguments.daemon)


def test_two_hosts_are_no_command() -> None:
    """The refusal names what daemons are called."""
    with pytest.raises(UsageError, match=r"negotiatr and node17 cannot all be hosts.*negotiator"):
        read_words(argparse.Namespace(words=["negotiatr", "node17"], daemon=[]))
