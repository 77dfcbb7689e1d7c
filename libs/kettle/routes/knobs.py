"""The names of HTCondor's configuration that a route file has."""

from collections.abc import Mapping
from typing import Final

NAMES: Final = "JOB_ROUTER_ROUTE_NAMES"
BEFORE: Final = "JOB_ROUTER_PRE_ROUTE_TRANSFORM_NAMES"
AFTER: Final = "JOB_ROUTER_POST_ROUTE_TRANSFORM_NAMES"
CONSTRAINT: Final = "JOB_ROUTER_SOURCE_JOB_CONSTRAINT"
MAX_JOBS: Final = "JOB_ROUTER_MAX_JOBS"
DEFAULT_MAX_JOBS: Final = "JOB_ROUTER_DEFAULT_MAX_JOBS_PER_ROUTE"
DEFAULT_MAX_IDLE: Final = "JOB_ROUTER_DEFAULT_MAX_IDLE_JOBS_PER_ROUTE"
IN_TURN: Final = "JOB_ROUTER_ROUND_ROBIN_SELECTION"
SELECTION: Final = "JOB_ROUTER_SELECTION"
"""Kettle's own: one of `Selection`."""
ROUTE: Final = "JOB_ROUTER_ROUTE_"
TRANSFORM: Final = "JOB_ROUTER_TRANSFORM_"

PREFIXES: Final[Mapping[str, tuple[str, ...]]] = {ROUTE: (NAMES,), TRANSFORM: (BEFORE, AFTER)}
"""What a name begins with -> the lists that name the rest."""
KNOBS: Final = frozenset(
    {NAMES, BEFORE, AFTER, CONSTRAINT, MAX_JOBS, DEFAULT_MAX_JOBS, DEFAULT_MAX_IDLE, IN_TURN, SELECTION}
)
OLD: Final = (
    "JOB_ROUTER_ENTRIES",
    "JOB_ROUTER_ENTRIES_FILE",
    "JOB_ROUTER_ENTRIES_CMD",
    "JOB_ROUTER_DEFAULTS",
)
"""Of the syntax with one ad for each route."""
IDLE_KNOBS: Final[Mapping[str, str]] = {
    "JOB_ROUTER_POLLING_PERIOD": "jobs are routed as soon as they come",
    "JOB_ROUTER_ENTRIES_REFRESH": "reload the file when it has changed",
    "JOB_ROUTER_NAME": "there is one entrypoint for each access point",
    "JOB_ROUTER_LOCK": "the log has one writer",
    "JOB_ROUTER_RELEASE_ON_HOLD": "a routed job is no copy: it is held itself",
    "JOB_ROUTER_SCHEDD1_NAME": "an entrypoint routes the jobs of its own access point",
    "JOB_ROUTER_SCHEDD2_NAME": "a routed job is no copy: it stays at its access point",
    "JOB_ROUTER_SCHEDD1_POOL": "an entrypoint routes the jobs of its own access point",
    "JOB_ROUTER_SCHEDD2_POOL": "a routed job is no copy: it stays at its access point",
    "JOB_ROUTER_HOOK_KEYWORD": "hooks are not carried out; write the transform",
}
"""Names that are HTCondor's and change nothing, with the reason."""
IDLE_SETTINGS: Final[Mapping[str, str]] = {
    "jobshouldbesandboxed": "files of jobs are moved in any case",
    "overrideroutingentry": "each route is written once",
    "sendidtokens": "jobs get tokens by their own descriptions, see docs/how-to/give-jobs-tokens.md",
    "sharedx509userproxy": "proxies are not handed on",
    "usesharedx509userproxy": "proxies are not handed on",
}
"""Settings of a route, in lower case, that are HTCondor's and change nothing, with the reason."""
