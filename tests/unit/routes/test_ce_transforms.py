"""`use ROUTES : CE`: whatever a job and a route say, every target is asked in the same attributes."""

import pytest

from kettle.routes import Counters, read_routes, route
from kettle_wire.ads.types import Ad, Expr, Scalar


def routed(ad: Ad, body: str = "") -> Ad:
    """The ad that a job has on its route."""
    text = f'use ROUTES : CE\nJOB_ROUTER_ROUTE_NAMES = R\nJOB_ROUTER_ROUTE_R @=end\nGridResource = "batch slurm"\n{body}\n@end\n'
    whole: Ad = {"JobUniverse": 5, "Requirements": True, **ad}
    decision = route(whole, read_routes(text, "routes"), Counters(), 0)
    assert "R" == decision.route, decision.refusals
    return {name: value for name, value in {**whole, **decision.set}.items() if name not in decision.removed}


@pytest.mark.parametrize(
    ("name", "ad", "body", "wanted"),
    [
        ("RequestCpus", {"xcount": 8, "RequestCpus": 2}, "default_xcount = 4", 8),
        ("RequestCpus", {"RequestCpus": 2}, "default_xcount = 4", 2),
        ("RequestCpus", {"RequestCpus": 1}, "default_xcount = 4", 4),
        ("RequestCpus", {}, "", 1),
        ("RequestMemory", {"maxMemory": 500, "RequestMemory": 9000}, "default_maxMemory = 4000", 500),
        ("RequestMemory", {"RequestMemory": 9000}, "default_maxMemory = 4000", 9000),
        ("RequestMemory", {"RequestMemory": 128}, "default_maxMemory = 4000", 4000),
        ("RequestMemory", {}, "", 2000),
        ("BatchQueue", {"BatchQueue": "b", "queue": "q"}, "default_queue = d", "b"),
        ("BatchQueue", {"queue": "q"}, "default_queue = d", "q"),
        ("BatchQueue", {}, "default_queue = d", "d"),
        ("BatchQueue", {}, "", None),
        ("BatchRuntime", {"maxWallTime": 60, "BatchRuntime": 5}, "", 3600),
        ("BatchRuntime", {"BatchRuntime": 5}, "default_maxWallTime = 10", 5),
        ("BatchRuntime", {}, "default_maxWallTime = 10", 600),
        ("BatchRuntime", {}, "", 4320 * 60),
        ("RequestGPUs", {"RequestGPUs": Expr("1 + 1")}, "", 2),
        ("WholeNodes", {"WantWholeNode": True}, "", True),
        ("WholeNodes", {"WantWholeNode": False}, "", None),
        ("CERequirements", {}, "", "CondorCE"),
        ("CERequirements", {}, "default_CERequirements = Site,VO", "CondorCE,Site,VO"),
        ("Environment", {"Environment": "A=1"}, "default_pilot_job_env = A=2 B=3", "A=1 B=3"),
        ("Environment", {"Environment": "A=1"}, "CONDORCE_PILOT_JOB_ENV = A=4", "A=4"),
        ("orig_Environment", {"Environment": "A=1"}, "", "A=1"),
        ("orig_AuthTokenSubject", {"AuthTokenSubject": "pilot"}, "", "pilot"),
        ("PeriodicRemove", {"PeriodicRemove": True}, "", None),
        ("OnExitHoldSubCode", {"minWalltime": 60}, "", 42),
        ("RoutedJob", {}, "", True),
    ],
)
def test_each_value_has_its_order_of_precedence(name: str, ad: Ad, body: str, wanted: Scalar | None) -> None:
    """
    The job's own words come before the route's defaults; what an administrator always wants comes first.
    """
    assert wanted == routed(ad, body).get(name)


def test_a_whole_node_is_not_asked_for_in_cpus() -> None:
    """The target knows how many a node has."""
    assert 3 == routed({"WantWholeNode": True, "RequestCpus": 3, "xcount": 8})["RequestCpus"]


def test_jobs_without_gpus_keep_off_machines_that_are_for_gpus() -> None:
    """Only where the job asks for no machine in particular."""
    assert True is not routed({})["Requirements"]
    assert True is routed({"RequestGPUs": 1})["Requirements"]
    assert Expr("TARGET.A") == routed({"Requirements": Expr("TARGET.A")})["Requirements"]
