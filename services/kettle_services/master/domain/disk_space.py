"""When a pool stops because its disk is full: before anything fails half-way through a write."""

from pathlib import Path


def shortage(directory: Path, *, free_bytes: int, minimum_bytes: int) -> str:
    """The sentence with which the master stops; empty if there is enough room."""
    if free_bytes >= minimum_bytes:
        return ""
    return (
        f"The disk of {directory} is full: {free_bytes >> 20} MiB are free, {minimum_bytes >> 20} MiB are the least "
        f"to go on with ([master] minimum_disk_mib).  Make room and start again; nothing that was acknowledged is lost."
    )
