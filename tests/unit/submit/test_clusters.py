"""From a submit file to clusters: where another one begins."""

from pathlib import Path

import pytest

from kettle.submit import Description, Site, Submission, SubmitError, expand, expand_clusters, parse
from kettle_wire.ads.types import Scalar

SITE = Site(arch="X86_64", opsys="LINUX", file_system_domain="here")
HEAD = "executable = /bin/sleep\n"


def described(text: str) -> Description:
    return parse(text, source="job.sub", cwd=Path("/tmp"), environ={})


def several(text: str) -> list[Submission]:
    return expand_clusters(described(text), SITE)


def arguments(found: Submission) -> list[Scalar]:
    return [found.job(proc)["Args"] for proc in range(found.count)]


@pytest.mark.parametrize(
    ("between", "clusters"),
    [
        ("executable = /bin/true", [2, 1]),
        ("executable = /bin/true\nqueue 0\nqueue 2\nexecutable = /bin/sleep", [2, 2, 1]),
        ("universe = local", [2, 1]),
        ("executable = /bin/sleep", [3]),
        ("universe = Vanilla", [3]),
        ("executable = /bin/true\nqueue 0\nexecutable = /bin/sleep", [3]),
        ("program = true", [3]),
        ("arguments = else", [3]),
    ],
)
def test_another_executable_or_universe_begins_a_cluster(between: str, clusters: list[int]) -> None:
    """It is compared as it is written, in one queue statement that makes jobs and the next."""
    text = f"program = sleep\n{HEAD}args = $(program)\nqueue 2\n{between}\nqueue\n"
    assert clusters == [found.count for found in several(text)]


def test_each_cluster_counts_its_jobs_from_0() -> None:
    """Steps and items are counted in each queue statement, warnings are said once."""
    each = "arguments = $(Process)/$(Step)/$(Row)/$(ItemIndex) $(x)\n"
    text = f"warning : mind\n{HEAD}{each}queue 2\nqueue 2 x in [1:] (a b)\nexecutable = /bin/true\nqueue x in (c d)\n"
    first, second = several(text)
    assert ["0/0/0/0", "1/1/0/0", "2/0/1/1 b", "3/1/1/1 b"] == arguments(first)
    assert ["0/0/0/0 c", "1/0/1/1 d"] == arguments(second)
    assert ["/bin/sleep", "/bin/true"] == [first.ad["Cmd"], second.ad["Cmd"]]
    assert [1, 0] == [len(first.warnings), len(second.warnings)]


def test_all_clusters_are_looked_at_before_there_is_one() -> None:
    """A mistake in the last one is found before anything can be sent."""
    with pytest.raises(SubmitError, match=r"job\.sub, line 4: .*request_cpus"):
        several(f"{HEAD}queue\nexecutable = /bin/true\nrequest_cpus = 0\nqueue\n")


def test_who_wants_one_cluster_is_told_where_another_begins() -> None:
    with pytest.raises(SubmitError, match=r"job\.sub, line 4: a second cluster .* another executable "):
        expand(described(f"{HEAD}queue\nexecutable = /bin/true\nqueue\nuniverse = local\nqueue\n"), SITE)
