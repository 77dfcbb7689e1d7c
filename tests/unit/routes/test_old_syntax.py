"""Routes of the old syntax as new ones."""

import pytest

from kettle.routes import Counters, RouteFileError, convert_routes, read_routes, route
from kettle_wire.ads.types import Ad, Expr

OLD = r"""# of long ago
JOB_ROUTER_DEFAULTS @=end
  [ MaxIdleJobs = 7; default_queue = "grid"; set_RoutedJob = true; ]
@end
JOB_ROUTER_ENTRIES = \
   [ name = "Local Slurm"; GridResource = "batch slurm"; TargetUniverse = 9; \
     requirements = target.queue =?= "slurm" && Owner != "TARGET.x"; \
     copy_environment = "orig_environment"; delete_environment = true; delete_Cmd = false; \
     set_requirements = TARGET.Cpus > 1; eval_set_RequestMemory = TARGET.maxMemory * 2; ] \
   [ TargetUniverse = 5; name = "Here"; MaxIdleJobs = 5; ]
OTHER = 1
"""


def test_a_converted_file_decides_as_the_old_one_said() -> None:
    """In the order in which HTCondor carries it out: copies, deletions, what is set, what is evaluated."""
    text = convert_routes(OLD, "old")
    assert text.startswith("# of long ago\nOTHER = 1\n")
    table = read_routes(text, "new")
    assert [("Local_Slurm", 7), ("Here", 5)] == [(each.name, each.max_idle_jobs) for each in table.routes]
    job: Ad = {
        "JobUniverse": 5,
        "Cmd": "x",
        "Owner": "anna",
        "queue": "slurm",
        "environment": "A=1",
        "maxMemory": 50,
    }
    decision = route(job, table, Counters(), 0)
    assert ("Local_Slurm", ("environment",)) == (decision.route, decision.removed)
    assert decision.set == {
        "JobUniverse": 9,
        "GridResource": "batch slurm",
        "RoutedJob": True,
        "orig_environment": "A=1",
        "requirements": Expr("TARGET.Cpus > 1"),
        "RequestMemory": 100,
    }
    assert ("Here", {"RoutedJob": True}) == (
        (other := route(job | {"queue": "q"}, table, Counters(), 0)).route,
        other.set,
    )


def test_a_file_of_the_new_syntax_stays_as_it_is() -> None:
    """Converted twice is converted once."""
    text = convert_routes(OLD, "old")
    assert text == convert_routes(text, "new")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("A = 1\nJOB_ROUTER_ENTRIES @=end\n[ name = ]\n@end", "old: line 3: JOB_ROUTER_ENTRIES: "),
        ("JOB_ROUTER_ENTRIES_CMD = /bin/x", "JOB_ROUTER_ENTRIES_CMD says where the routes are"),
    ],
)
def test_what_cannot_be_read_is_refused(text: str, sentence: str) -> None:
    """With the line, or with what to do."""
    with pytest.raises(RouteFileError, match=sentence):
        convert_routes(text, "old")


def test_a_form_feed_ends_no_line() -> None:
    """What is taken out are the lines of the old routes, and no others."""
    old = '#a\n\x0c\nKEEP = 1\nJOB_ROUTER_ENTRIES @=end\n[ name = "A"; ]\n@end\nALSO = 2\n'
    text = convert_routes(old, "old")
    assert "KEEP = 1" in text
    assert "ALSO = 2" in text
    assert "JOB_ROUTER_ENTRIES" not in text
    assert "@end" not in text.partition("JOB_ROUTER_ROUTE")[0]
