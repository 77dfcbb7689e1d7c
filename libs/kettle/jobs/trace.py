"""
The trace of a job: a function of its name, so that every service and every restart continues the same one.

W3C Trace Context: `00-<trace id>-<span id>-01`.  The span named here is the job itself; attempts are its children.
"""

from functools import lru_cache
from hashlib import blake2b

import msgspec

from kettle_wire.jobs import JobId


def traceparent(schedd: str, job: JobId) -> str:
    """The trace context of one job."""
    return _traceparent(f"{schedd}#{job}")


@lru_cache(maxsize=8192)
def _traceparent(name: str) -> str:
    digest = blake2b(name.encode(), digest_size=24).hexdigest()
    return f"00-{digest[:32]}-{digest[32:]}-01"


def trace_meta(schedd: str, stream: str) -> bytes:
    """What the log keeps beside an event of a job's stream; empty for other streams."""
    kind, _, name = stream.partition("/")
    if kind != "job":
        return b""
    return msgspec.msgpack.encode({"traceparent": _traceparent(f"{schedd}#{name}")})
