"""What a schedd measures of files that jobs move by URL; `metrics.METRICS` has them among all others."""

from typing import Final

from kettle_wire.telemetry.declaration import Attribute, Metric

_SOURCE: Final = Attribute(
    name="source",
    meaning="What served them: origin (where the URL says), cache (of the site), machine (its own cache); or sent.",
)
FILES_MOVED: Final = Metric(
    name="kettle.schedd.files.moved",
    kind="counter",
    unit="{file}",
    meaning="Files that ended attempts have moved by URL.",
    services=("schedd",),
    attributes=(
        _SOURCE,
        Attribute(
            name="hit", meaning="Whether a cache had it already: yes, or no where none had or nobody knows."
        ),
    ),
    when="a job that has moved a file by URL",
)
FILES_BYTES: Final = Metric(
    name="kettle.schedd.files.bytes",
    kind="counter",
    unit="By",
    meaning="Bytes of files that ended attempts have moved by URL.",
    services=("schedd",),
    attributes=(_SOURCE,),
    when="a job that has moved a file by URL",
)
FILES_FAILED: Final = Metric(
    name="kettle.schedd.files.failed",
    kind="counter",
    unit="{file}",
    meaning="Files that ended attempts could not move by URL.",
    services=("schedd",),
)
METRICS: Final = tuple(value for value in list(globals().values()) if isinstance(value, Metric))
"""All of them, in the order of this module."""
