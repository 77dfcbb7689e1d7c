"""
What people of joined access points may ask services of the pool: who runs such a machine can be any of its people.
"""

from typing import Any, Final

from kettle_wire.commands.access import CLOSE_SESSION, EXCHANGE, OPEN_SESSION, PEEK
from kettle_wire.commands.accounting import QUERY_HISTORY, QUERY_PROGRESS, QUERY_USAGE, REPORT_USAGE
from kettle_wire.commands.collector import QUERY_ADS
from kettle_wire.commands.negotiator import QUERY_PRIORITIES, WHY
from kettle_wire.commands.rights import ACCOUNTING_RIGHTS, COLLECTOR_RIGHTS, NEGOTIATOR_RIGHTS, STARTD_RIGHTS
from kettle_wire.endpoint import Endpoint

OF_THE_POOL: Final[frozenset[Endpoint[Any, Any]]] = frozenset(
    {
        ACCOUNTING_RIGHTS,
        CLOSE_SESSION,
        COLLECTOR_RIGHTS,
        EXCHANGE,
        NEGOTIATOR_RIGHTS,
        OPEN_SESSION,
        PEEK,
        QUERY_ADS,
        QUERY_HISTORY,
        QUERY_PRIORITIES,
        QUERY_PROGRESS,
        QUERY_USAGE,
        REPORT_USAGE,
        STARTD_RIGHTS,
        WHY,
    }
)
"""
Beside their own queue; an endpoint that is not here is closed to them.  None that believes the caller's name beyond what everybody
may see, or gives out what stands for it elsewhere, may be.
"""
