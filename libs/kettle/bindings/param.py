"""param: HTCondor's settings, as far as its clients read or set them."""

import os
import socket
import threading
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any, Final

from kettle.client import PoolNotFoundError
from kettle.client.connections.condor_config import CondorConfig, bus_addresses, pool_of

Typed = str | int | bool

_DAGMAN: Final[Mapping[str, Typed]] = {
    "DAGMAN_ABORT_DUPLICATES": True,
    "DAGMAN_ALLOW_EVENTS": 114,
    "DAGMAN_ALWAYS_RUN_POST": False,
    "DAGMAN_AUTO_RESCUE": True,
    "DAGMAN_CHECK_QUEUE_INTERVAL": 28800,
    "DAGMAN_DEFAULT_PRIORITY": 0,
    "DAGMAN_GENERATE_SUBDAG_SUBMITS": True,
    "DAGMAN_MAX_JOBS_IDLE": 1000,
    "DAGMAN_MAX_JOBS_SUBMITTED": 0,
    "DAGMAN_MAX_JOB_HOLDS": 100,
    "DAGMAN_MAX_POST_SCRIPTS": 20,
    "DAGMAN_MAX_PRE_SCRIPTS": 20,
    "DAGMAN_MAX_RESCUE_NUM": 100,
    "DAGMAN_MAX_SUBMITS_PER_INTERVAL": 100,
    "DAGMAN_MAX_SUBMIT_ATTEMPTS": 6,
    "DAGMAN_MUNGE_NODE_NAMES": True,
    "DAGMAN_PROHIBIT_MULTI_JOBS": False,
    "DAGMAN_RETRY_SUBMIT_FIRST": True,
    "DAGMAN_SUBMIT_DELAY": 0,
    "DAGMAN_SUPPRESS_NOTIFICATION": False,
    "DAGMAN_USE_STRICT": 1,
    "DAGMAN_USER_LOG_SCAN_INTERVAL": 5,
    "DAGMAN_VERBOSITY": 3,
    "DAGMAN_WRITE_PARTIAL_RESCUE": True,
}
"""Clients copy these, with their types, and expect them to be there."""


_FIXED: Final[Mapping[str, Typed]] = {
    **_DAGMAN,
    "DAEMON_LIST": "MASTER, COLLECTOR, NEGOTIATOR, SCHEDD, STARTD",
    "USE_JOBSETS": True,
}
"""DAEMON_LIST: HTCondor's roles in a pool on one machine, of which `condor_who -quick` says which are alive."""


class Param(MutableMapping[str, Any]):
    """
    Names without regard to case: what the program set, else a variable `_CONDOR_NAME`, else a file, else what is known.
    """

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        self._environ = os.environ if environ is None else environ
        self._lock = threading.Lock()
        self._set: dict[str, str] = {}
        self._knobs: CondorConfig | None = None

    @property
    def knobs(self) -> CondorConfig:
        """What is set, by whomever; variables and files as they were when they were first looked at."""
        with self._lock:
            if self._knobs is None:
                self._knobs = CondorConfig(self._environ, self._set)
            return self._knobs

    def refresh(self) -> None:
        """Look at variables and files again, and forget what the program set."""
        with self._lock:
            self._set.clear()
            self._knobs = None

    def __getitem__(self, key: str) -> Any:
        known = self._known(key)
        text = self.knobs.get(key)
        if text is None:
            if known is None:
                raise KeyError(key)
            return known
        return _typed(text, known)

    def __setitem__(self, key: str, value: str) -> None:
        if not isinstance(value, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError("value must be a string")
        with self._lock:
            self._set[key.lower()] = value

    def __delitem__(self, key: str) -> None:
        with self._lock:
            if self._set.pop(key.lower(), None) is None:
                raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        names = {name.upper() for name in (*_FIXED, *self.knobs.names())}
        names |= {name for name in _OWN if self._known(name) is not None}
        return iter(sorted(names))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, key: object) -> bool:
        if not isinstance(key, str):
            return False
        return self.knobs.get(key) is not None or self._known(key) is not None

    def _known(self, name: str) -> Typed | None:
        match name.upper():
            case "FULL_HOSTNAME":
                return socket.getfqdn()
            case "HOSTNAME":
                return socket.gethostname()
            case "COLLECTOR_HOST" | "SCHEDD_NAME" | "CONDOR_HOST" as name:
                return _of_the_pool(name, self.knobs)
            case other:
                return _FIXED.get(other)


_OWN: Final = ("FULL_HOSTNAME", "HOSTNAME", "COLLECTOR_HOST", "SCHEDD_NAME", "CONDOR_HOST")


def _of_the_pool(name: str, knobs: CondorConfig) -> str | None:
    try:
        pool = pool_of(knobs)
    except PoolNotFoundError:
        return None
    address = next(iter(bus_addresses(pool)), "")
    return {"COLLECTOR_HOST": address, "CONDOR_HOST": address.partition(":")[0]}.get(name, pool.schedd)


def _typed(text: str, known: Typed | None) -> Typed:
    """A text as the type of what it stands for."""
    match known:
        case bool():
            return text.strip().lower() in {"true", "t", "yes", "1"}
        case int():
            return int(text) if text.strip().lstrip("-").isdecimal() else text
        case _:
            return text


param: Final = Param()
"""Of this process."""
