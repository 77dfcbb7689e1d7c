"""
Nodes that need not run, because one that was the same has run, and what it left is still there.  Pure.

What makes nodes the same is the ad of their job, without what says where it belongs and what it needs to run, and the contents of
the files that it names.  Everything else that an ad says counts, known or not: a node that is run for nothing is no harm.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from kettle.dag.structure import Node, NodeKind
from kettle.transfer.file_lists import is_url, items
from kettle.transfer.submit_side_paths import (
    STDERR,
    STDOUT,
    TransferPath,
    destination,
    inputs,
    listed,
    results,
    text,
    transfers,
)
from kettle_wire.ads.types import Ad, Expr, Scalar
from kettle_wire.codes import Universe

_FORM: Final = "kettle-memo-1"
"""What is made into a key may change: keys of another form are those of other nodes."""
_BESIDE: Final = frozenset(
    name.lower()
    for name in (
        "DAGManJobId", "DAGManNodeRetry", "DAGManNodesLog", "DAGManNodesMask", "DAGNodeName", "DAGParentNodeNames",
        "KettleWorkflowStep", "JobBatchName", "JobSubmitMethod", "SubmitEventNotes", "SubmitEventUserNotes", "UserLog",
        "JobPrio", "JobNotification", "NotifyUser", "Rank", "Requirements",
        "RequestCpus", "RequestMemory", "RequestDisk", "RequestGPUs",
        "DiskUsage", "ExecutableSize", "ImageSize", "TransferInputSizeMB",
    )
)  # fmt: skip
"""Attributes that say where a job belongs, how it comes to its turn and what it needs, and not what it does."""
_DIGEST: Final = re.compile(r"@sha256:[0-9a-f]{64}\Z")
_encode: Final = msgspec.msgpack.Encoder(order="sorted").encode


class Ran(msgspec.Struct, frozen=True):
    """A node that has run well, and is remembered."""

    workflow: int
    name: str
    cluster: int
    at: int
    """Seconds since the epoch."""
    outputs: Mapping[str, str]
    """SHA-256, in hexadecimal, of its files, by their paths."""


def refusal(node: Node, ad: Ad, jobs: int) -> str:
    """Why a node is run in any case; empty: it may be remembered and left out."""
    image = text(ad, "ContainerImage") or text(ad, "DockerImage")
    checks = (
        (node.kind is not NodeKind.JOB, "it is no JOB"),
        (any((node.pre, node.post, node.hold)), "it has a script"),
        (jobs != 1, "it has not one job"),
        (ad.get("JobUniverse", Universe.VANILLA) != Universe.VANILLA, "its job is not of the vanilla universe"),
        (not transfers(ad), "its files are not transferred, so it is not known which it reads"),
        (not isinstance(ad.get("TransferOutput"), str), "it does not name its results (transfer_output_files)"),
        (len(results(ad)) != len(items(text(ad, "TransferOutput"))), "a result of it has no name on the access point"),
        (any(map(is_url, listed(ad))), "an input of it is a URL"),
        (bool(image) and not _is_fixed(image, ad), "its image is named by a tag, which may move (write NAME@sha256:...)"),
    )  # fmt: skip
    return next((reason for fails, reason in checks if fails), "")


def _is_fixed(image: str, ad: Ad) -> bool:
    """Whether the name of an image always means the same one; an image that is sent is one of the inputs."""
    return _DIGEST.search(image) is not None or text(ad, "ContainerImageSource") == "cedar"


def read_by(ad: Ad) -> list[TransferPath]:
    """The files of which the contents count."""
    return inputs(ad)


def left_by(ad: Ad) -> Iterator[str]:
    """
    The paths of the files that a job leaves on the access point. Raises ValueError for one that leads elsewhere.
    """
    for name in (STDOUT, STDERR, *results(ad)):
        if (path := destination(ad, name)) is not None:
            yield str(path)


def key(ad: Ad, contents: Mapping[str, str]) -> str:
    """
    What nodes that are the same have in common, in hexadecimal; `contents`: SHA-256 of each file that it reads, by its name in the sandbox.
    """
    said = {name.lower(): _plain(value) for name, value in ad.items() if name.lower() not in _BESIDE}
    return hashlib.sha256(_encode((_FORM, said, dict(contents)))).hexdigest()


def _plain(value: Scalar) -> object:
    return ("expr", value.expr) if isinstance(value, Expr) else value
