"""WRENCH's model against a slow one that only has lists, and against laws that hold without any peer."""

import random
from typing import Final

import pytest

from kettle_services.simulator.platforms.hosts import Host
from kettle_services.simulator.wrench.delays import Delays, Oddities
from kettle_services.simulator.wrench.pool import WrenchPool
from kettle_services.simulator.wrench.unstable_sort import order_of_equals

_US: Final = 1_000_000

Job = tuple[int, int, int, int, int]
"""Submitted at, work, cores, memory, priority."""


class _Lists:
    """
    These rules, with a walk through all that waits in each cycle, and a look at every host for each job.
    """

    def __init__(self, hosts: list[Host], jobs: list[Job], delays: Delays) -> None:
        self.hosts, self.jobs, self.delays = hosts, jobs, delays
        self.idle = [[host.cores, host.memory] for host in hosts]
        self.pending: list[int] = []
        self.messages: list[tuple[str, int]] = []
        self.running: dict[int, tuple[int, int]] = {}
        self.come, self.busy_until, self.flag = 0, 0, False
        self.serving: int | None = None
        self.cycle: list[int] | None = None
        self.chosen: int | None = None
        self.placed, self.cycle_at = False, 0
        self.starts: dict[int, int] = {}
        self.reported: dict[int, int] = {}

    def run(self) -> None:
        now = 0
        while (due := self._next(now)) is not None:
            now = due[0]
            getattr(self, due[1])(now)

    def _next(self, now: int) -> tuple[int, str] | None:
        due: list[tuple[int, int, str]] = []
        if self.running:
            due.append((min(end for end, _ in self.running.values()), 0, "_end"))
        if self.messages or self.serving is not None:
            due.append((max(now, self.busy_until), 1, "_manage"))
        if self.cycle is not None:
            due.append((self.cycle_at, 2, "_negotiate"))
        if self.come < len(self.jobs):
            due.append((self.jobs[self.come][0], 3, "_arrive"))
        if not due:
            return None
        at, _, what = min(due)
        return at, what

    def _end(self, now: int) -> None:
        job = min(self.running, key=lambda job: (self.running[job][0], job))
        _, host = self.running.pop(job)
        self.idle[host][0] += self.jobs[job][2]
        self.idle[host][1] += self.jobs[job][3]
        self.messages.append(("ended", job))

    def _arrive(self, now: int) -> None:
        self.messages.append(("submitted", self.come))
        self.come += 1

    def _manage(self, now: int) -> None:
        if self.serving is None:
            kind, job = self.messages.pop(0)
            if kind == "ended":
                self.serving, self.busy_until = job, now + self.delays.non_grid_post
                if self.busy_until > now:
                    return
            elif kind == "submitted":
                self.pending.append(job)
                self.flag = False
            else:
                self.cycle, self.flag = None, not self.placed
        if self.serving is not None:
            self.reported[self.serving], self.serving, self.flag = now, None, False
        if self.pending and self.cycle is None and not self.flag:
            self.cycle = sorted(self.pending, key=lambda job: -self.jobs[job][4])
            self.placed, self.cycle_at = False, now + self.delays.negotiator

    def _negotiate(self, now: int) -> None:
        assert self.cycle is not None
        if self.chosen is not None:
            self._start(self.chosen, now)
            self.chosen = None
        while self.cycle:
            job = self.cycle.pop(0)
            if self._host(job) is None:
                continue
            self.placed = True
            if self.delays.non_grid_pre:
                self.chosen, self.cycle_at = job, now + self.delays.non_grid_pre
                return
            self._start(job, now)
        self.cycle_at = 1 << 60
        self.messages.append(("negotiated", 0))

    def _host(self, job: int) -> int | None:
        _, _, cores, memory, _ = self.jobs[job]
        fit = [host for host, (idle, free) in enumerate(self.idle) if cores <= idle and memory <= free]
        return fit[0] if fit else None

    def _start(self, job: int, now: int) -> None:
        host = self._host(job)
        assert host is not None
        self.pending.remove(job)
        self.idle[host][0] -= self.jobs[job][2]
        self.idle[host][1] -= self.jobs[job][3]
        self.starts[job] = now
        self.running[job] = now + round(self.jobs[job][1] / self.hosts[host].speed), host


def _simulated(
    hosts: list[Host], jobs: list[Job], delays: Delays, oddities: Oddities | None = None
) -> WrenchPool:
    pool = WrenchPool(bare_metal=hosts, delays=delays, oddities=oddities)
    for at, work, cores, memory, priority in jobs:
        pool.submit(at, work, cores=cores, memory=memory, priority=priority)
    pool.run()
    return pool


@pytest.mark.parametrize("seed", range(150))
def test_it_decides_as_lists_do(seed: int) -> None:
    draw = random.Random(seed)
    hosts = [
        Host(
            name=f"host{n}", cores=draw.randint(1, 4), memory=draw.choice([8, 16]), speed=draw.choice([1, 2])
        )
        for n in range(draw.randint(1, 4))
    ]
    largest = max(hosts, key=lambda host: host.cores)
    at = 0
    jobs: list[Job] = []
    for _ in range(draw.randint(1, 40)):
        at += draw.choice([0, 0, 1, 7, 60])
        need = draw.randint(1, largest.cores), draw.randint(0, 8)
        jobs.append((at, draw.randint(1, 90), *need, draw.choice([0, 0, 0, 5])))
    delays = Delays(
        negotiator=draw.choice([0, 5]), non_grid_pre=draw.choice([0, 2]), non_grid_post=draw.choice([0, 3])
    )
    slow = _Lists(hosts, jobs, delays)
    slow.run()
    pool = _simulated(hosts, jobs, delays)
    assert list(pool.starts) == [slow.starts[job] for job in range(len(jobs))]
    assert list(pool.reported) == [slow.reported[job] for job in range(len(jobs))]


def test_no_host_ever_runs_more_than_it_has() -> None:
    draw = random.Random(7)
    hosts = [Host(name=f"host{n}", cores=8, memory=64) for n in range(5)]
    jobs = [(n, draw.randint(1, 500), draw.randint(1, 8), draw.randint(0, 64), 0) for n in range(600)]
    pool = _simulated(hosts, jobs, Delays())
    changes = sorted(
        [(end, 0, -cores) for end, (_, _, cores, _, _) in zip(pool.ends, jobs, strict=True)]
        + [(start, 1, cores) for start, (_, _, cores, _, _) in zip(pool.starts, jobs, strict=True)]
    )
    busy = most = 0
    for _, _, change in changes:
        busy += change
        most = max(most, busy)
    assert most <= 40
    assert busy == 0


def test_hosts_that_are_twice_as_fast_need_half_the_time() -> None:
    jobs = [(0, 60 * _US + 2 * n, 1, 0, 0) for n in range(100)]
    slow = _simulated([Host(name="host", cores=7)], jobs, Delays())
    fast = _simulated([Host(name="host", cores=7, speed=2.0)], jobs, Delays())
    assert max(slow.ends) == 2 * max(fast.ends)


def test_jobs_in_order_on_equal_cores_end_within_grahams_bound() -> None:
    draw = random.Random(3)
    works = [draw.randint(1, 1000) for _ in range(300)]
    pool = _simulated([Host(name="host", cores=16)], [(0, work, 1, 0, 0) for work in works], Delays())
    assert max(works) <= max(pool.ends) <= sum(works) / 16 + max(works)


def test_a_higher_priority_goes_first_unless_wrench_is_to_be_repeated() -> None:
    jobs = [(0, 10, 1, 0, 0), (0, 10, 1, 0, 1), (0, 10, 1, 0, 9)]
    delays = Delays(negotiator=1)
    pool = _simulated([Host(name="host")], [(0, 1, 1, 0, 0), *jobs], delays)
    assert sorted(range(1, 4), key=lambda job: pool.starts[job]) == [3, 2, 1]
    same = _simulated(
        [Host(name="host")], [(0, 1, 1, 0, 0), *jobs], delays, Oddities(priorities_ignored=True)
    )
    assert sorted(range(1, 4), key=lambda job: same.starts[job]) == [1, 2, 3]


def test_a_batch_service_gives_a_job_whole_nodes() -> None:
    pool = WrenchPool(batch=[Host(name=f"node{n}", cores=2) for n in range(3)])
    first = pool.submit_to_batch(0, 10, nodes=2, cores=2)
    second = pool.submit_to_batch(0, 10, nodes=3, cores=1)
    third = pool.submit_to_batch(0, 10, nodes=1, cores=1)
    pool.run()
    assert [pool.starts[job] for job in (first, second, third)] == [0, 10, 10]


def test_what_can_never_run_is_refused() -> None:
    pool = WrenchPool(bare_metal=[Host(name="host", cores=4, memory=100)])
    with pytest.raises(ValueError, match="no host has 5 cores and 0 MiB of memory"):
        pool.submit(0, 1, cores=5)
    with pytest.raises(ValueError, match="not 1 nodes of 1 cores"):
        pool.submit_to_batch(0, 1)
    pool.submit(10, 1)
    with pytest.raises(ValueError, match="one after another"):
        pool.submit(9, 1)


def test_an_unstable_sort_leaves_few_equals_alone_and_permutes_many() -> None:
    assert order_of_equals(16) == tuple(range(16))
    # What std::sort of GNU's library makes of twenty equal elements.
    assert order_of_equals(20) == (10, 19, 18, 17, 16, 15, 14, 13, 12, 11, 0, 9, 8, 7, 6, 5, 4, 3, 2, 1)
    assert sorted(order_of_equals(1000)) == list(range(1000))


def test_messages_that_take_hardly_any_time_change_hardly_anything() -> None:
    """The machine that asks host after host decides as the one that knows them all."""
    draw = random.Random(8)
    hosts = [Host(name=f"host{n}", cores=draw.randint(1, 3), memory=16) for n in range(4)]
    most = max(host.cores for host in hosts)
    jobs = [
        (n * 997, draw.randint(1, 90) * 1_000_003 + n, draw.randint(1, most), draw.randint(0, 8), 0)
        for n in range(60)
    ]
    delays = Delays(negotiator=5 * _US, non_grid_pre=_US, non_grid_post=2 * _US)
    whole = WrenchPool(bare_metal=hosts, delays=delays, messages=[0] * 4)
    plain = WrenchPool(bare_metal=hosts, delays=delays)
    for pool in (whole, plain):
        for at, work, cores, memory, priority in jobs:
            pool.submit(at, work, cores=cores, memory=memory, priority=priority)
        pool.run()
    assert (list(whole.starts), list(whole.reported)) == (list(plain.starts), list(plain.reported))


def test_a_job_is_admitted_when_a_host_has_told_that_it_could_hold_it() -> None:
    """
    Two messages for the cores of the first host, four for those and the memory of the second; then seven less these four, as always.
    """
    hosts = [Host(name="small", cores=1), Host(name="large", cores=4)]
    pool = WrenchPool(bare_metal=hosts, messages=[10, 100])
    job = pool.submit(0, 1000, cores=2)
    pool.run()
    admitted = 2 * 10 + 4 * 100
    asked = admitted + 2 * 10 + 2 * 100
    assert pool.starts[job] == asked + 100
    assert pool.reported[job] == pool.ends[job] + 100
