"""How many jobs a description makes, said before they are made."""

from pathlib import Path

import pytest

from kettle.submit import NoJobError, Site, expand_clusters, parse
from kettle.submit.expected_jobs import ExpectedJobs, expected_jobs

SITE = Site(arch="X86_64", opsys="LINUX", file_system_domain="here")


def expected(text: str) -> list[ExpectedJobs]:
    described = parse(text, source="job.sub", cwd=Path("/tmp"), environ={})
    counts = [each.count for each in expand_clusters(described, SITE)]
    found = expected_jobs(described)
    assert counts == [each.jobs for each in found]
    return found


def test_jobs_of_each_cluster_are_counted() -> None:
    """Items times count, over all queue statements of the cluster."""
    text = (
        "executable = /bin/sleep\narguments = 1\nqueue 2\nqueue 3 x in (a b)\nexecutable = /bin/true\nqueue\n"
    )
    assert [(8, False), (1, False)] == expected(text)


@pytest.mark.parametrize(
    "line", ["max_idle = 1", "materialize_max_idle = 1", "max_materialize = 2", "+JobMaterializeLimit = 2"]
)
def test_late_materialisation_is_seen(line: str) -> None:
    """However it is spelled."""
    assert [(3, True)] == expected(f"executable = /bin/sleep\narguments = 1\n{line}\nqueue 3\n")


def test_no_jobs_are_none() -> None:
    with pytest.raises(NoJobError):
        expected("executable = /bin/sleep\nqueue 0\n")
