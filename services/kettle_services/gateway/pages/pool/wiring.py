"""Which page of the pool is shown by what."""

from collections.abc import Mapping
from typing import Final

from kettle_services.gateway.pages.page import Form, Handler, Page
from kettle_services.gateway.pages.pool.administration import (
    ADMINISTRATION,
    BAN,
    END,
    SERVICES,
    UNBAN,
    AdministrationPages,
)
from kettle_services.gateway.pages.pool.alerts import ALERTS, AlertPages
from kettle_services.gateway.pages.pool.entrypoint_routes import ROUTES_PAGE, RoutePages
from kettle_services.gateway.pages.pool.failures import FAILURES, FailurePages
from kettle_services.gateway.pages.pool.log import LOG, LogPages
from kettle_services.gateway.pages.pool.machines import MACHINE, MACHINES, ORDER, MachinePages
from kettle_services.gateway.pages.pool.negotiations import NEGOTIATION, NEGOTIATIONS, NegotiationPages
from kettle_services.gateway.pages.pool.own_machines import OWN_MACHINES, REMOVE, REVOKE, OwnMachinePages
from kettle_services.gateway.pages.pool.shares import FAIRSHARE, SUBMITTERS, SharePages
from kettle_services.gateway.pages.pool.usage import USAGE, USAGE_TABLE, UsagePages
from kettle_services.gateway.pages.pool.worker_pools import POOL, POOLS, WorkerPoolPages
from kettle_services.gateway.pages.questions import Questions

POOL_PAGES: Final = (
    ADMINISTRATION,
    ALERTS,
    FAILURES,
    FAIRSHARE,
    LOG,
    MACHINE,
    MACHINES,
    NEGOTIATION,
    NEGOTIATIONS,
    OWN_MACHINES,
    POOL,
    POOLS,
    ROUTES_PAGE,
    SERVICES,
    SUBMITTERS,
    USAGE,
    USAGE_TABLE,
)


def pool_handlers(questions: Questions, documentation: str) -> Mapping[Page | Form, Handler]:
    """All of them; `documentation`: where pages of the documentation are, empty: nobody knows."""
    administration = AdministrationPages(questions)
    machines = MachinePages(questions)
    shares = SharePages(questions)
    negotiations = NegotiationPages(questions)
    own_machines = OwnMachinePages(questions)
    usage = UsagePages(questions)
    worker_pools = WorkerPoolPages(questions)
    return {
        ALERTS: AlertPages(questions, documentation).alerts,
        ADMINISTRATION: administration.administration,
        BAN: administration.ban,
        END: administration.end_session,
        FAILURES: FailurePages(questions).failures,
        FAIRSHARE: shares.fairshare,
        LOG: LogPages(questions).log,
        MACHINE: machines.machine,
        MACHINES: machines.machines,
        ORDER: machines.order,
        NEGOTIATION: negotiations.negotiation,
        NEGOTIATIONS: negotiations.negotiations,
        OWN_MACHINES: own_machines.machines,
        POOL: worker_pools.pool,
        POOLS: worker_pools.pools,
        REMOVE: own_machines.remove,
        REVOKE: own_machines.revoke,
        ROUTES_PAGE: RoutePages(questions).routes,
        SERVICES: administration.services,
        SUBMITTERS: shares.submitters,
        UNBAN: administration.unban,
        USAGE: usage.usage,
        USAGE_TABLE: usage.table,
    }
