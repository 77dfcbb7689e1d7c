"""The tables of condor_status, to the letter."""

import pytest

from kettle_services.condor.printing.print_format import print_format_of
from kettle_services.condor.printing.print_table import PrintTable
from kettle_services.condor.printing.status_tables import TABLES
from kettle_wire.ads.types import Ad, Expr

SLOT: Ad = {
    "Name": "slot1@one.example", "Machine": "one.example", "OpSys": "LINUX", "OpSysAndVer": "Debian12", "Arch": "X86_64",
    "State": "Unclaimed", "Activity": "Idle", "LoadAvg": 0.5, "TotalLoadAvg": 0.5, "Memory": 1024, "Disk": 5000, "Cpus": 3,
    "TotalCpus": 4, "TotalSlotCpus": 4, "TotalSlotMemory": 3072, "EnteredCurrentState": 100, "EnteredCurrentActivity": 160,
    "LastHeardFrom": 3760, "KeyboardIdle": 86400, "SlotType": "Partitionable", "PartitionableSlot": True,
    "NumDynamicSlots": 1, "ChildMemory": Expr("{ 2048 }"), "ChildRemoteUser": Expr('{ "ada" }'),
}  # fmt: skip
USED: Ad = SLOT | {
    "Name": "slot1_1@one.example", "State": "Claimed", "Activity": "Busy", "Memory": 2048, "Cpus": 1, "RemoteUser": "ada",
    "ClientMachine": "schedd", "SlotType": "Dynamic", "PartitionableSlot": False, "DynamicSlot": True, "GPUs": 1,
    "GPUs_GlobalMemoryMB": 40960, "GPUs_DeviceName": "Tesla", "TotalSlotCpus": 1,
}  # fmt: skip
SCHEDDS: list[Ad] = [
    {"Name": "schedd", "Machine": "ap1", "TotalRunningJobs": 1, "TotalIdleJobs": 20, "TotalHeldJobs": 0},
    {"Name": "other", "TotalRunningJobs": 300, "TotalIdleJobs": 4, "TotalHeldJobs": 5},
]


def shown(name: str, ads: list[Ad]) -> str:
    table = TABLES[name]
    printed = PrintTable(print_format_of(table.layout, name))
    found = printed.ads(lambda _names: ads)
    return "".join([*printed.lines(found), *(table.sums(found) if table.sums else ())])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "startd",
            """\
Name                OpSys      Arch     State     Activity LoadAv Mem     ActvtyTime
slot1@one.example   LINUX      X86_64   Unclaimed Idle      0.500   1024  0+01:00:00
slot1_1@one.example LINUX      X86_64   Claimed   Busy      0.500   2048  0+01:00:00

                     Total Owner Claimed Unclaimed Matched Preempting  Drain Backfill

        X86_64/LINUX     2     0       1         1       0          0      0        0

               Total     2     0       1         1       0          0      0        0
""",
        ),
        (
            "startd compact",
            """\
Machine     Platform     Slots Cpus Gpus  TotalGb FreCpu  FreeGb  CpuLoad ST MaxSlotGb
one.example x64/Debian12    1p    4          3.00      3     1.00    0.12 Ui      2.00

                     Total Owner Claimed Unclaimed Matched Preempting  Drain Backfill

        X86_64/LINUX     1     0       0         1       0          0      0        0

               Total     1     0       0         1       0          0      0        0
""",
        ),
        (
            "run",
            """\
Name                OpSys      Arch     LoadAv RemoteUser           ClientMachine   \n\
slot1_1@one.example LINUX      X86_64    0.500 ada                  schedd          \n\

                     Machines         MIPS       KFLOPS   AvgLoadAvg

        X86_64/LINUX        1            0            0        0.500

               Total        1            0            0        0.500
""",
        ),
        (
            "state",
            """\
Name                Cpu  Mem  LoadAv   KbdIdle    State       StateTime  Activ   ActvtyTime
slot1@one.example   3    1024  0.500   1+00:00:00 Unclaimed   0+01:01:00 Idle    0+01:00:00
slot1_1@one.example 1    2048  0.500   1+00:00:00 Claimed     0+01:01:00 Busy    0+01:00:00

                     Total Owner Unclaimed Claimed Preempting Matched  Drain Backfill

                Busy     1     0         0       1          0       0      0        0
                Idle     1     0         1       0          0       0      0        0

               Total     2     0         1       1          0       0      0        0
""",
        ),
        (
            "gpus",
            """\
Name                ST User GPUs GPU-Memory GPU-Name
slot1_1@one.example Cb ada     1 40.0 GB    Tesla   \n\

                     Total Owner Claimed Unclaimed Matched Preempting  Drain Backfill

        X86_64/LINUX     1     0       1         0       0          0      0        0

               Total     1     0       1         0       0          0      0        0
""",
        ),
        (
            "server",
            """\
Name                OpSys      Arch     LoadAv Memory   Disk      Mips    KFlops   \n\
slot1@one.example   LINUX      X86_64    0.500     1024      5000 [?????] [???????]
slot1_1@one.example LINUX      X86_64    0.500     2048      5000 [?????] [???????]

                        Slots Avail      Memory        Disk        MIPS      KFLOPS

        X86_64/LINUX        2     2        3072       10000           0           0

               Total        2     2        3072       10000           0           0
""",
        ),
    ],
)
def test_slots_are_shown(name: str, expected: str) -> None:
    """Each view has its columns and its sums; a line for a machine is made of its partitionable slot."""
    assert expected == shown(name, [USED, SLOT])


def test_schedds_are_shown_with_their_sums() -> None:
    expected = """\
Name   Machine RunningJobs   IdleJobs   HeldJobs
schedd ap1               1         20          0
other  ?               300          4          5

                      TotalRunningJobs      TotalIdleJobs      TotalHeldJobs

               Total               301                 24                  5
"""
    assert expected == shown("schedd", SCHEDDS)


def test_every_table_bears_an_ad_without_values() -> None:
    """An ad of an older daemon says less: what it does not say is shown as unknown."""
    for name, table in TABLES.items():
        layout = print_format_of(table.layout, name)
        layout.where = ""
        assert 2 == len(list(PrintTable(layout).lines([{}]))), name
        assert all(table.sums([{}]) if table.sums else ()), name
