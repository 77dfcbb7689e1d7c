"""What NVIDIA's driver reports about the GPUs of this machine."""

import logging
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

_log: Final = logging.getLogger(__name__)
PROC: Final = Path("/proc/driver/nvidia/gpus")
_NODE: Final = re.compile(r"/dev/nvidia([0-9]+)")


def cards(proc: Path = PROC) -> Iterator[dict[str, str]]:
    """
    Each card's file of information, by the names of its lines: `GPU UUID`, `Model`, `Bus Location`, `Device Minor`.
    """
    for path in sorted(proc.glob("*/information")):
        try:
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError as error:
            _log.warning("a GPU cannot be read about", extra={"cause": str(error)})
            continue
        yield {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}


def nodes(listed: Sequence[str], assigned: Sequence[str], proc: Path = PROC) -> list[str]:
    """
    The listed device files that a job with these GPUs needs: not the nodes of other GPUs.

    Where the driver does not know an assigned GPU (a part of one, say), it is not known which node belongs to which
    GPU: then all.
    """
    if not assigned:
        return []
    minors = {said.get("GPU UUID", ""): said.get("Device Minor", "") for said in cards(proc)}
    if not minors.keys() >= set(assigned):
        return list(listed)
    others = {minor for name, minor in minors.items() if name not in assigned}
    numbers = {path: match[1] for path in listed if (match := _NODE.fullmatch(path)) is not None}
    return [path for path in listed if numbers.get(path) not in others]
