"""What a job's ad says of its machines."""

from kettle_services.schedd.domain.jobs.machine_attrs import machine_notes
from kettle_wire.ads import Ad, Expr

SLOT: Ad = {
    "OpSys": "LINUX",
    "Cpus": 4,
    "Twice": Expr("Cpus * 2"),
    "Odd": Expr("{1}"),
    "Lost": Expr("Nothing"),
}


def test_a_job_that_asks_for_nothing_has_nothing_noted() -> None:
    assert {} == machine_notes({"JobMachineAttrs": "", "LastMatchListLength": 0}, "s1", SLOT, 0.0)


def test_the_newest_comes_first() -> None:
    """What was noted before moves on by one place; as long as the history is."""
    job: Ad = {
        "JobMachineAttrs": "opsys, Twice Odd Lost a-b",
        "JobMachineAttrsHistoryLength": 2,
        "LastMatchListLength": 2,
    }
    first = machine_notes(job, "s1", SLOT, 0.0)
    assert {"MachineAttropsys0": "LINUX", "MachineAttrTwice0": 8, "LastMatchName0": "s1"} == first
    second = machine_notes(job | first, "s2", SLOT | {"Cpus": 1}, 0.0)
    assert (2, 8) == (second["MachineAttrTwice0"], second["MachineAttrTwice1"])
    third = machine_notes(job | first | second, "s3", SLOT, 0.0)
    assert ("s3", "s2") == (third["LastMatchName0"], third["LastMatchName1"])
    assert {"MachineAttrTwice2", "LastMatchName2"}.isdisjoint(third)


def test_the_site_asks_too() -> None:
    """What both name is noted once; the job says of how many machines."""
    job: Ad = {"JobMachineAttrs": "cpus", "JobMachineAttrsHistoryLength": 0}
    assert {} == machine_notes(job, "s", SLOT, 0.0, system=("Cpus",), history=3)
    del job["JobMachineAttrsHistoryLength"]
    assert {"MachineAttrcpus0": 4} == machine_notes(job, "s", SLOT, 0.0, system=("Cpus",))


def test_services_are_reached_at_their_own_ports() -> None:
    job: Ad = {"ContainerServiceNames": "web, api lost", "web_ContainerPort": 80, "API_CONTAINERPORT": 81}
    assert {"web_HostPort": 80, "api_HostPort": 81} == machine_notes(job, "s", SLOT, 0.0)
