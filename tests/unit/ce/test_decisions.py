"""What an entrypoint decides about the jobs that wait, in their order and within the limits of the routes."""

from kettle.routes import Counters, RouteTable, read_routes
from kettle_services.ce.domain.decisions import (
    Said,
    WaitingJob,
    counters_of,
    decide,
    next_hold,
    overdue,
    to_decide,
)
from kettle_services.ce.domain.throttle import LONGEST_S, WINDOW_S, closed_until
from kettle_wire.ads import Ad
from kettle_wire.commands.routing import RouteCount, VoCount
from kettle_wire.jobs import JobId

NOW = 1_700_000_000.0
HOLD_S = 1800.0


def table(more: str = "", *, most: int = 2) -> RouteTable:
    """One route to a batch system for jobs of atlas, with room for `most`."""
    return read_routes(
        "JOB_ROUTER_ROUTE_NAMES = Slurm\n"
        "JOB_ROUTER_ROUTE_Slurm @=end\n"
        '  REQUIREMENTS VO == "atlas"\n'
        '  GridResource = "batch slurm"\n'
        f"  MaxJobs = {most}\n"
        f"{more}"
        "@end\n",
        "routes",
    )


def job(cluster: int, proc: int, **more: str | int) -> WaitingJob:
    ad: Ad = {"Owner": "ada", "JobUniverse": 5, "VO": "atlas", "EnteredCurrentStatus": int(NOW), **more}
    return WaitingJob(JobId(cluster, proc), 0, ad, "", NOW)


def decided(jobs: list[WaitingJob], routes: RouteTable, now: float = NOW) -> tuple[list[Said], Counters]:
    counters = counters_of(routes, [], {}, 0)
    chosen = to_decide(jobs, routes, counters)
    late = [each for each in overdue(jobs, HOLD_S, now) if each not in chosen]
    return decide([*chosen, *late], routes, counters, now, hold_after=HOLD_S)


def test_jobs_alike_get_their_route_together() -> None:
    """One event and one routing for what is the same; what else its schedd has to know is in the ad."""
    routes = table("  OnLocalRemove = retry(3)\n", most=9)
    said, counters = decided([job(1, 1), job(1, 0), job(2, 0)], routes)
    assert [("Slurm", [(0, 1), (1, 1)]), ("Slurm", [(0, 1)])] == [
        (each.event().route, [(one.proc, one.number) for one in each.event().jobs]) for each in said
    ]
    assert ("retry", 3) == tuple(said[0].attributes[n] for n in ("OnLocalRemove", "OnLocalRemoveRetries"))
    assert (3, 3) == (counters.of("Slurm").jobs, counters.turn)


def test_the_best_get_what_room_there_is_and_the_others_wait_with_the_reason() -> None:
    """By priority, then in the order of submission; they are looked at again when the route has room."""
    routes = table()
    jobs = [job(1, 0), job(1, 1), job(2, 0, JobPrio=5)]
    said, full = decided(jobs, routes)
    assert [JobId(2, 0), JobId(1, 0)] == [
        one.job for each in said if each.decision.route for one in each.jobs
    ]
    (waits,) = (each for each in said if not each.decision.route)
    assert "no route takes it: Slurm: it has as many jobs as it may (MaxJobs = 2)" == waits.reason
    rest = [jobs[1]]
    rest[0].reason = waits.reason
    assert [] == to_decide(rest, routes, full)
    room = counters_of(routes, [RouteCount(route="Slurm", jobs=1, idle=0)], {}, full.turn)
    assert rest == to_decide(rest, routes, room)
    assert [] == to_decide(rest, routes, counters_of(routes, [], {"Slurm": "it is closed"}, 0))


def test_a_reason_that_stays_the_same_is_said_once_and_then_the_job_is_held() -> None:
    """Not those that wait because a route is only full."""
    routes, strange = table(), job(3, 0, VO="cms")
    ((said,), _) = decided([strange], routes)
    assert 'no route takes it: Slurm: VO == "atlas" is false' == said.reason
    strange.reason = said.reason
    assert [] == decided([strange], routes)[0]
    assert NOW + HOLD_S == next_hold([strange], HOLD_S)
    ((held,), _) = decided([strange], routes, NOW + HOLD_S)
    assert held.hold
    patient = [job(4, proc) for proc in range(3)]
    decided(patient, routes)
    assert None is next_hold([patient[2]], HOLD_S)


def test_other_routes_are_tried_for_all_that_wait() -> None:
    """Also for those that none of the routes before would ever have taken."""
    routes, other = table(), table(most=3)
    waits = job(5, 0, VO="cms")
    decided([waits], routes)
    assert [] == to_decide([waits], routes, counters_of(routes, [], {}, 0))
    assert [waits] == to_decide([waits], other, counters_of(other, [], {}, 0))


def test_a_route_on_which_jobs_fail_is_closed_until_the_rate_is_what_it_may_be() -> None:
    """The more fail, the longer, up to a bound; old failures do not count."""
    threshold = 0.05
    admitted = int(threshold * WINDOW_S)
    assert 0.0 == closed_until([NOW] * admitted, threshold, NOW)
    assert NOW + (admitted + 1) / threshold == closed_until([NOW] * (admitted + 1), threshold, NOW)
    assert NOW + LONGEST_S == closed_until([NOW] * 1000, threshold, NOW)
    assert 0.0 == closed_until([NOW - WINDOW_S] * 1000, threshold, NOW)
    assert 0.0 == closed_until([NOW] * 1000, 0.0, NOW)


def of_vo(idle: int, running: int = 0, *, draining: str = "") -> Counters:
    """What there is while the VO atlas has so many jobs, of two idle ones and three that run or may."""
    told = VoCount(vo="atlas", jobs=9, idle=idle, running=running, held=0, max_idle=2, max_running=3)
    return counters_of(table(most=9), [], {}, 0, vos=[told], draining=draining)


def pilot(proc: int, vo: str = "atlas") -> WaitingJob:
    return job(1, proc, x509UserProxyVOName=vo)


def test_a_vo_has_only_so_many_jobs_with_routes() -> None:
    """
    Each job that gets one counts for the next; others of the same cluster wait with the reason, and are never held for it.
    """
    routes, jobs = table(most=9), [pilot(0), pilot(1), pilot(2), pilot(3, "cms")]
    said, counters = decide(jobs, routes, of_vo(1), NOW + HOLD_S, hold_after=HOLD_S)
    given = [one.job.proc for each in said if each.decision.route for one in each.jobs]
    (waits,) = (each for each in said if not each.decision.route)
    assert ([0, 3], [1, 2], False) == (given, [one.job.proc for one in waits.jobs], waits.hold)
    why = "no route takes it: the VO atlas has as many idle jobs as it may (max_idle = 2)"
    assert (why, 2, None) == (waits.reason, counters.vos["atlas"].idle, next_hold(jobs[1:3], HOLD_S))
    assert [] == to_decide(jobs[1:3], routes, of_vo(2))
    assert jobs[1:3] == to_decide(jobs[1:3], routes, of_vo(0))


def test_what_may_run_counts_as_what_runs() -> None:
    """So there is never a moment with more."""
    ((said,), _) = decide([pilot(0)], table(most=9), of_vo(1, 2), NOW, hold_after=0)
    assert "the VO atlas has as many jobs that run or may as it may (max_running = 3)" in said.reason
    ((said,), _) = decide([pilot(0)], table(most=9), of_vo(1, 1), NOW, hold_after=0)
    assert "Slurm" == said.decision.route


def test_a_drained_entrypoint_gives_no_route() -> None:
    """It says so of each job, and holds none; afterwards they are looked at again."""
    routes, jobs = table(most=9), [pilot(0), pilot(1, "cms")]
    draining = "ce.draining: root drains the entrypoint"
    ((said,), _) = decide(jobs, routes, of_vo(0, draining=draining), NOW + HOLD_S, hold_after=HOLD_S)
    assert (f"no route takes it: {draining}", False) == (said.reason, said.hold)
    assert [] == to_decide(jobs, routes, of_vo(0, draining=draining))
    assert jobs == to_decide(jobs, routes, of_vo(0))


def test_whose_words_for_the_command_that_submits_is_said() -> None:
    """A job's own are told apart from those of its route, whatever the job says of that itself."""
    own: dict[str, str] = {"batchExtraSubmitArgs": "--nice=3"}
    jobs = [job(1, 0), job(2, 0, **own), job(3, 0, **own, BatchExtraSubmitArgsAreOwn="no")]
    said, _ = decided(jobs, table(most=9))
    assert [None, True, True] == [each.attributes.get("BatchExtraSubmitArgsAreOwn") for each in said]
    said, _ = decided(
        [job(1, 0), job(2, 0, **own)], table('  SET BatchExtraSubmitArgs "--qos=grid"\n', most=9)
    )
    assert [None, None] == [each.attributes.get("BatchExtraSubmitArgsAreOwn") for each in said]
    said, _ = decided([job(2, 0, **own)], table("  DELETE BatchExtraSubmitArgs\n", most=9))
    assert [None] == [each.attributes.get("BatchExtraSubmitArgsAreOwn") for each in said]
