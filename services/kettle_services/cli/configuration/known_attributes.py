"""The attributes that a configuration itself adds to ads."""

import re
from collections.abc import Iterator
from typing import Final, cast

_SET: Final = re.compile(
    r"^\s*(?:EVAL)?(?:SET|DEFAULT|COPY\s+\w+|RENAME\s+\w+)\s+(\w+)", re.IGNORECASE | re.MULTILINE
)


def made_by(settings: object) -> Iterator[str]:
    """The attributes that a service's settings add to ads."""
    yield from cast("dict[str, object]", getattr(settings, "attributes", {}))
    for name in ("machine_resources", "modify_request_expr"):
        for tag in cast("dict[str, object]", getattr(settings, name, {})):
            yield from (tag, f"Request{tag}", f"Total{tag}", f"Assigned{tag}")
    for properties in cast(
        "dict[str, dict[str, dict[str, object]]]", getattr(settings, "machine_resource_properties", {})
    ).values():
        for known in properties.values():
            yield from known
    yield from cast("tuple[str, ...]", getattr(settings, "significant_attributes", ()))
    for transform in cast("tuple[object, ...]", getattr(settings, "job_transforms", ())):
        yield from _SET.findall(str(getattr(transform, "transform", "")))
