"""Jobs that no host of a platform would ever run, found before anything is played by what answers `why`."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from kettle.classad import FOREIGN_STEPS, ClassAd, Context
from kettle.matchmaking import Explainer, Tree
from kettle.routes import RouteTable, route
from kettle_services.ce.domain.decisions import counters_of
from kettle_services.negotiator.domain.pool import Pool
from kettle_services.simulator.domain.startds import Startds
from kettle_services.simulator.invented.period_of_workload import job_ad, machine_of
from kettle_services.simulator.platforms.hosts import Host
from kettle_services.simulator.platforms.platform import Platform
from kettle_services.simulator.workloads.workload import Workload
from kettle_wire.ads import Ad
from kettle_wire.worker_pools import WorkerPool

_ALIKE: Final = ("cores", "memory", "kind")
_SHOWN: Final = 3


def machines_of(pools: Sequence[WorkerPool]) -> list[Host]:
    """One machine of each offer, as far as it counts for what a job needs."""
    return [
        Host(name=f"{pool.name}-{offer.name}", cores=offer.cpus, memory=offer.memory)
        for pool in pools
        for offer in pool.offers
    ]


def first_too_large(platform: Platform, workload: Workload) -> int | None:
    """The first job of a workload that no host of the platform can hold."""
    left = np.arange(len(workload))
    for cores, memory in {(host.cores, host.memory) for host in platform.hosts}:
        fits = (workload.cores[left] <= cores) & (workload.memory[left] <= memory)
        left = left[~fits]
    return int(left[0]) if len(left) else None


def first_refused(
    platform: Platform,
    workload: Workload,
    groups: Tree,
    said: Ad | None = None,
    routes: RouteTable | None = None,
) -> tuple[int, str] | None:
    """
    The first job that none of the hosts would take even if it was free, and which conditions refuse it, as `kettle why` says it.

    One host of each sort is looked at, by what the jobs and the hosts say of each other.
    """
    pool = Pool()
    startds = Startds(pool)
    for host in {(host.cores, host.memory, host.speed): host for host in platform.hosts}.values():
        startds.join(machine_of(host, said))
    explainer = Explainer(
        pool.slots, pool.machines(), Context(now=lambda: 0, max_steps=FOREIGN_STEPS), policies=True
    )
    columns = np.stack([getattr(workload, name) for name in _ALIKE])
    _, firsts = np.unique(columns, axis=1, return_index=True)
    for job in sorted(firsts.tolist()):
        user = workload.users[int(workload.user[job])]
        its: Ad = {"Owner": user, "User": user, **job_ad(workload, job, groups)}
        if routes is not None and workload.kinds[int(workload.kind[job])].routed:
            decision = route(its, routes, counters_of(routes, (), {}, 0), 0)
            if not decision.route:
                return job, "; ".join(["no route takes it", *(one.sentence for one in decision.refusals)])
            gone = {name.lower() for name in (*decision.set, *decision.removed)}
            its = {name: value for name, value in its.items() if name.lower() not in gone} | decision.set
        ad = ClassAd.from_wire(its)
        found = explainer.explain(ad)
        if found.able or explainer.later(ad).any():
            continue
        refusals = [f"{one.text} (of the {one.side})" for one in found.refusals[:_SHOWN]]
        return job, found.fault or f"no host meets {' and '.join(refusals)}"
    return None
