"""The master's ad."""

import msgspec

from kettle.pool.daemon_states import DaemonState
from kettle_services.master.domain.ad import Host, master_ad
from kettle_wire.ads import Ad
from kettle_wire.ads.daemon import prefix_of

HOST = Host(name="h", machine="m", started=100.5, pid=7, uid=0, version="1.0", installed="1.0")


def ad_of(*daemons: DaemonState, host: Host = HOST) -> Ad:
    return master_ad(host, daemons, now=200.0)


def test_each_daemon_has_its_attributes() -> None:
    """HTCondor's names where it has them: `<DAEMON>_StartTime` of a daemon that runs."""
    ad = ad_of(DaemonState(name="schedd.ap1#2", status="standby", pid=9, since=150.0, starts=3, hangs=1))
    assert {
        "MyType": "DaemonMaster",
        "Name": "h",
        "DaemonStartTime": 100,
        "RealUid": 0,
        "DaemonList": "MASTER, schedd.ap1#2",
        "SCHEDD_AP1_2_State": "Standby",
        "SCHEDD_AP1_2_StartTime": 150,
        "SCHEDD_AP1_2_Pid": 9,
        "SCHEDD_AP1_2_Restarts": 2,
        "SCHEDD_AP1_2_Hangs": 1,
        "NumDaemonsRunning": 1,
    }.items() <= ad.items()


def test_a_daemon_that_does_not_run_has_an_end() -> None:
    """Since when it is away, and how it ended, instead of since when it runs."""
    ad = ad_of(DaemonState(name="startd", status="off", since=150.0, starts=1, last_exit="status 0"))
    assert {"STARTD_State": "Off", "STARTD_EndTime": 150, "STARTD_LastExit": "status 0"}.items() <= ad.items()
    assert not {"STARTD_StartTime", "STARTD_Pid"} & ad.keys()
    assert ad["NumDaemonsOff"] == 1


def test_what_is_special_about_the_host_is_there_only_then() -> None:
    """A new version, a tuning script, a reconfiguration."""
    assert not {"NewVersion", "LinuxKernelTuning", "DaemonLastReconfigTime"} & ad_of().keys()
    host = msgspec.structs.replace(HOST, installed="1.1", waiting=True, tuning="status 3", reconfigured=180.0)
    ad = ad_of(host=host)
    assert ("1.1", "status 3", 180) == tuple(
        ad[name] for name in ("NewVersion", "LinuxKernelTuning", "DaemonLastReconfigTime")
    )


def test_a_prefix_is_a_name_of_an_attribute() -> None:
    """Whatever the daemon is called, its attributes can be written in an expression."""
    assert ["SCHEDD", "SCHEDD_AP_1_2", "STARTD_N_DE"] == [
        prefix_of(name) for name in ("schedd", "schedd.ap-1#2", "startd.n.de")
    ]
