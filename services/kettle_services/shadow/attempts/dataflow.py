"""
Jobs that need not run, because what they would make is there already and is newer than what they would make it of.
"""

from collections.abc import Iterator
from pathlib import Path

from kettle.transfer.file_lists import is_url, items
from kettle.transfer.submit_side_paths import PROXY, destination, inputs, text
from kettle_services.shadow.files.access import FileAccess
from kettle_wire.ads import Ad


def wants_to_be_skipped(ad: Ad) -> bool:
    """Whether it says so (SkipIfDataflow)."""
    return ad.get("SkipIfDataflow") is True


def is_made(ad: Ad, places: FileAccess) -> bool:
    """
    Whether all listed results are where they would go, the oldest of them newer than the newest file that it takes along.

    Done with the owner's rights.  False if no results are listed, if one of them goes to a URL, and if any file cannot be looked at.
    """
    wanted = [destination(ad, name) for name in items(text(ad, "TransferOutput"))]
    if not wanted or any(path is None or is_url(str(path)) for path in wanted) or "OutputDestination" in ad:
        return False
    try:
        made = min(_times((Path(path) for path in wanted if path is not None), places))
        taken = inputs({**ad, PROXY: ""})  # a proxy is renewed all day, and no result is made of it
        return made > max(_times((Path(each.path) for each in taken), places), default=made)
    except (OSError, ValueError):
        return False


def _times(paths: Iterator[Path], places: FileAccess) -> Iterator[int]:
    """When files were changed, in nanoseconds; raises OSError."""
    for path in paths:
        places.refuse_own(path, but_spool=True)
        yield path.stat().st_mtime_ns
