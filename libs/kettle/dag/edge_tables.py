"""
Very many edges, by whole columns: what `kettle.dag.edges` makes of few, with a library that takes a tenth of a second to load.
"""

from array import array

import numpy as np

_INDEX = "<u4"


def ordered(
    sources: "array[int]", targets: "array[int]", weak: bytes, nodes: int, vertices: int
) -> tuple[bytes, bytes, bytes]:
    """
    Starts, ends and weakness of edges, joins being negative numbers: each pair once, the strong one if there is one.
    """
    above, below = _vertices(sources, nodes), _vertices(targets, nodes)
    pairs = np.unique((above << 32 | below) << 1 | np.frombuffer(weak, dtype=np.uint8))
    is_first = np.ones(len(pairs), dtype=bool)
    is_first[1:] = (pairs[1:] >> 1) != (pairs[:-1] >> 1)  # the strong one of a pair comes first
    pairs = pairs[is_first]
    ends = (pairs >> 1 & 0xFFFFFFFF).astype(_INDEX).tobytes()
    return _starts(pairs >> 33, vertices), ends, (pairs & 1).astype(np.uint8).tobytes()


def reversed_edges(starts: bytes, ends: bytes, weak: bytes, vertices: int) -> tuple[bytes, bytes, bytes]:
    """Starts, ends and weakness by what were the ends."""
    bounds = np.frombuffer(starts, dtype=_INDEX).astype(np.int64)
    sources = np.repeat(np.arange(vertices, dtype=_INDEX), bounds[1:] - bounds[:-1])
    targets = np.frombuffer(ends, dtype=_INDEX)
    order = np.argsort(targets, kind="stable")
    turned = np.frombuffer(weak, dtype=np.uint8)[order]
    return _starts(targets, vertices), sources[order].tobytes(), turned.tobytes()


def _vertices(numbers: "array[int]", nodes: int) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    found = np.frombuffer(numbers, dtype=np.int32).astype(np.int64)
    return np.where(found < 0, nodes - 1 - found, found)


def _starts(sources: "np.ndarray[tuple[int], np.dtype[np.integer]]", vertices: int) -> bytes:
    counts = np.bincount(sources.astype(np.int64), minlength=vertices)
    return np.concatenate(([0], np.cumsum(counts))).astype(_INDEX).tobytes()
