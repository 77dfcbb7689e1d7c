"""Where a job goes, and why it goes nowhere else."""

import msgspec
import pytest

from kettle.routes import Counters, RouteCount, RouteTable, read_routes, route
from kettle_wire.ads.types import Ad, Expr
from kettle_wire.routes import RefusalKind, RouteRefusal

PRODUCTION = """\
JOB_ROUTER_PRE_ROUTE_TRANSFORM_NAMES = Defaults
JOB_ROUTER_TRANSFORM_Defaults @=end
  DELETE RouteMe
  SET RoutedJob true
  SET Requirements true
  SET CollHost "$(COLLECTOR_NAME)"
@end

COLLECTOR_NAME = here

JOB_ROUTER_SOURCE_JOB_CONSTRAINT = RouteMe =!= undefined
JOB_ROUTER_ROUTE_NAMES = Production1 Analysis3 Production2 Analysis4
JOB_ROUTER_ROUTE_Production1 @=end
  UNIVERSE Vanilla
  REQUIREMENTS RouteMe && (ProcId & 1)
  MaxJobs = 3
  SET ProductionRun 1
  SET Requirements target.slotId & 1
@end
JOB_ROUTER_ROUTE_Production2 @=end
  UNIVERSE VANILLA
  REQUIREMENTS RouteMe && (ProcId & 1)
  SET ProductionRun 2
@end
JOB_ROUTER_ROUTE_Analysis3 @=end
  UNIVERSE 5
  REQUIREMENTS RouteMe && !(ProcId & 1)
  SET AnalysisRun 3
@end
JOB_ROUTER_ROUTE_Analysis4 @=end
  UNIVERSE vanilla
  Requirements RouteMe && !(ProcId & 1)
  SET AnalysisRun 4
@end
"""


def table(text: str = PRODUCTION) -> RouteTable:
    return read_routes(text, "routes")


def one(body: str, more: str = "") -> RouteTable:
    """A table with one route to Slurm."""
    return table(
        f'JOB_ROUTER_ROUTE_NAMES = R\nJOB_ROUTER_ROUTE_R @=end\nGridResource = "batch slurm"\n{body}\n@end\n{more}'
    )


def job(**attributes: object) -> Ad:
    return msgspec.convert({"JobUniverse": 5, "RequestCpus": 2, **attributes}, Ad)


@pytest.mark.parametrize("proc", range(8))
def test_the_first_route_that_takes_a_job_gets_it(proc: int) -> None:
    """
    Transforms before the route are carried out first, with the macros of the file, wherever these stand in it.
    """
    decision = route(job(RouteMe=True, ProcId=proc), table(), Counters(), 0)
    run: Ad = {"ProductionRun": 1, "Requirements": Expr("target.slotId & 1")}
    run = run if proc & 1 else {"Requirements": True, "AnalysisRun": 3}
    assert {"RoutedJob": True, "CollHost": "here", **run} == decision.set
    assert (("RouteMe",), "Production1" if proc & 1 else "Analysis3") == (decision.removed, decision.route)


def test_a_job_that_no_route_takes_hears_of_each_why() -> None:
    """The first clause that is not true is named, with the attributes that the job has not."""
    text = PRODUCTION.replace("JOB_ROUTER_SOURCE_JOB_CONSTRAINT", "# ")
    decision = route(job(RouteMe=False), table(text), Counters(), 0)
    assert ("", False) == (decision.route, decision.may_pass)
    assert ["RouteMe is false"] * 4 == [each.sentence for each in decision.refusals]
    names = ["Production1", "Analysis3", "Production2", "Analysis4"]
    assert names == [each.route for each in decision.refusals]
    decision = route(job(RouteMe=True), table(text), Counters(), 0)
    assert "ProcId & 1 is undefined: the job has no ProcId" == decision.refusals[0].sentence


def test_what_the_constraint_leaves_out_is_refused_once() -> None:
    """No route is asked about such a job."""
    sentence = "JOB_ROUTER_SOURCE_JOB_CONSTRAINT: RouteMe isnt undefined is false"
    refusals = route(job(), table(), Counters(), 0).refusals
    assert (RouteRefusal("", RefusalKind.CONSTRAINT, sentence),) == refusals


def test_a_full_route_is_passed_over_and_may_take_the_job_later() -> None:
    """Jobs and idle jobs are limited, all jobs together too, and a route can be closed."""
    full = {"Production1": RouteCount(jobs=3), "Production2": RouteCount(jobs=50, idle=50)}
    decision = route(job(RouteMe=True, ProcId=1), table(), Counters(routes=full), 0)
    assert ("", True) == (decision.route, decision.may_pass)
    whys = {each.route: each.why for each in decision.refusals}
    assert (RefusalKind.MAX_JOBS, RefusalKind.MAX_IDLE_JOBS) == (whys["Production1"], whys["Production2"])
    closed = {"Production1": RouteCount(closed="the batch system does not answer")}
    decision = route(job(RouteMe=True, ProcId=1), table(), Counters(routes=closed), 0)
    assert ("Production2", RefusalKind.CLOSED) == (decision.route, decision.refusals[0].why)
    most = table(f"{PRODUCTION}JOB_ROUTER_MAX_JOBS = 3\n")
    decision = route(job(RouteMe=True, ProcId=0), most, Counters(routes={"Analysis4": RouteCount(jobs=3)}), 0)
    assert (
        "all routes together have 3 jobs of at most 3 (JOB_ROUTER_MAX_JOBS)" == decision.refusals[-1].sentence
    )


def test_a_statement_that_fails_fails_the_route_for_that_job() -> None:
    """The next route is tried, and the reason names the line."""
    text = PRODUCTION.replace("  SET ProductionRun 1", "  EVALSET ProductionRun 1 / Zero")
    decision = route(job(RouteMe=True, ProcId=1, Zero=0), table(text), Counters(), 0)
    assert "Production2" == decision.route
    failed = [each for each in decision.refusals if each.why is RefusalKind.FAILED]
    assert ["route Production1, line 17: '1 / Zero' evaluates to an error"] == [
        each.sentence for each in failed
    ]
    assert "Production1" == route(job(RouteMe=True, ProcId=1, Zero=1), table(text), Counters(), 0).route


def test_requirements_of_a_route_see_the_job_as_it_came() -> None:
    """The requirements of transforms see it as it is by then."""
    more = """\
JOB_ROUTER_PRE_ROUTE_TRANSFORM_NAMES = First
JOB_ROUTER_POST_ROUTE_TRANSFORM_NAMES = Second Third
JOB_ROUTER_TRANSFORM_First = SET Queue "new"
JOB_ROUTER_TRANSFORM_Second @=end
  REQUIREMENTS Queue == "new"
  SET Seen 2
@end
JOB_ROUTER_TRANSFORM_Third @=end
  REQUIREMENTS Queue == "old"
  SET Seen 3
@end
"""
    decision = route(job(Queue="old"), one('REQUIREMENTS Queue == "old"', more), Counters(), 0)
    assert ("R", {"Queue": "new", "Seen": 2}) == (
        decision.route,
        {name: decision.set[name] for name in ("Queue", "Seen")},
    )


def test_one_set_of_macros_is_shared_by_the_whole_chain() -> None:
    """
    What a route says of memory is heard by the transform after it; what one job's chain said, by no other job's.
    """
    more = """\
JOB_ROUTER_POST_ROUTE_TRANSFORM_NAMES = Memory
JOB_ROUTER_TRANSFORM_Memory = EVALSET RequestMemory maxMemory ?: $(default_maxMemory:2000)
"""
    routes = one("if defined MY.Big\n default_maxMemory = 8000\nendif", more)
    memory = [
        route(ad, routes, Counters(), 0).set["RequestMemory"]
        for ad in (job(Big=True), job(), job(Big=True, maxMemory=1))
    ]
    assert [8000, 2000, 1] == memory


def test_the_trace_tells_each_effect_with_its_line() -> None:
    """What a statement changed, from what to what; statements without effect are left out."""
    decision = route(
        job(Old=1),
        one("n = $(MY.Old)1\nDEFAULT RequestCpus 9\nSET Old $(n)\nDELETE RequestCpus"),
        Counters(),
        0,
    )
    told = [(each.by, each.line, each.name, each.before, each.after) for each in decision.trace]
    assert told == [
        ("route R", 2, "JobUniverse", 5, 9),
        ("route R", 2, "GridResource", None, "batch slurm"),
        ("route R", 4, "$(n)", None, "$(MY.Old)1"),
        ("route R", 6, "Old", 1, 11),
        ("route R", 7, "RequestCpus", 2, None),
    ]


def test_a_decision_can_be_made_again() -> None:
    """Random macros draw the same for the same job and the same file, and not the same for all jobs."""
    routes = one('SET Site "$RANDOM_CHOICE(a,b,c,d,e,f,g,h)"')
    ads = [job(GlobalJobId=f"here#{i}.0#1") for i in range(20)]
    sites = [route(ad, routes, Counters(), 0).set["Site"] for ad in ads]
    assert sites == [route(ad, routes, Counters(), 0).set["Site"] for ad in ads]
    assert len(set(sites)) > 1


def test_a_job_edited_in_place_keeps_its_universe() -> None:
    """It goes nowhere: only the statements are carried out."""
    decision = route(job(Edit=True), one("EditJobInPlace = Edit\nSET A 1"), Counters(), 0)
    assert (True, {"A": 1}) == (decision.in_place, decision.set)
    assert not route(job(), one("EditJobInPlace = Edit\nSET A 1"), Counters(), 0).in_place


def test_nobody_is_routed_into_somebody_else() -> None:
    """
    Whose job it is, and what has happened to it, no pattern reaches; one that reaches who is charged fails the route.
    """
    decision = route(job(Owner="anna", ClusterId=7), one("DELETE /.*/"), Counters(), 0)
    assert {"Owner", "ClusterId"}.isdisjoint(decision.removed)
    assert "RequestCpus" in decision.removed
    decision = route(job(AcctGroup="birds"), one("DELETE /^Acct/"), Counters(), 0)
    assert ("", RefusalKind.FAILED) == (decision.route, decision.refusals[0].why)
    assert "AcctGroup" in decision.refusals[0].sentence
