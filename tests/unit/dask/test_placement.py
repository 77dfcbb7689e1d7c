from pathlib import Path

import pytest

from kettle.dask.placement import NotInJobError, machine_network, of_site, placement_of_job


def environ(tmp_path: Path, machine: str) -> dict[str, str]:
    (tmp_path / ".job.ad").write_text("ClusterId = 12\nProcId = 3\n")
    (tmp_path / ".machine.ad").write_text(machine)
    return {"_CONDOR_JOB_AD": f"{tmp_path}/.job.ad", "_CONDOR_MACHINE_AD": f"{tmp_path}/.machine.ad"}


def test_a_machine_that_names_no_site_is_reached_on_itself_only(tmp_path: Path) -> None:
    """It listens on the loopback device, in a network that has the name of the machine."""
    place = placement_of_job(environ(tmp_path, "Cpus = 2\nMemory = 1000\n"))
    assert ("12.3", 2, 1000 * 2**20) == (place.job, place.cores, place.memory_bytes)
    assert ("127.0.0.1", "127.0.0.1", machine_network()) == (place.host, place.binds, place.network)
    assert {machine_network()} == place.networks


def test_a_machine_of_a_site_is_reached_from_the_site(tmp_path: Path) -> None:
    """And from itself."""
    place = placement_of_job(environ(tmp_path, 'SiteName = "T2_XX"\n'))
    assert of_site("T2_XX") == place.network
    assert {of_site("T2_XX"), machine_network()} == place.networks


def test_it_is_for_jobs() -> None:
    """Elsewhere a sentence says how it is started."""
    with pytest.raises(NotInJobError, match="kettle dask create"):
        placement_of_job({})


@pytest.mark.parametrize(
    ("machine", "cores", "host"),
    [
        ("Cpus = 3\nMemory = 1.5\n", 3, "loopback"),
        ("cpus=3 \nMEMORY = 1.5\n", 3, "loopback"),
        ("Cpus = 1\nCpus = 3\nMemory = 3 / 2.0\n", 3, "loopback"),
        ('Cpus = Many + 1\nMany = 2\nMemory = 1.5\nSiteName = strcat("T2", "_XX")\n', 3, "site:T2_XX"),
        ('Cpus = 3\nMemory = 1.5\nSiteName = "a\\"b"\n', 3, 'site:a"b'),
        ("MyCpus = 9\nMemory = 1.5\nSiteName = undefined\n", 1, "loopback"),
    ],
)
def test_what_a_machine_says_is_read_as_the_language_has_it(
    tmp_path: Path, machine: str, cores: int, host: str
) -> None:
    """Literals, which are read without it, expressions, and attributes that stand there twice."""
    place = placement_of_job(environ(tmp_path, machine))
    assert (cores, int(1.5 * 2**20)) == (place.cores, place.memory_bytes)
    assert host == (place.network if place.network.startswith("site:") else "loopback")
