"""
IDTOKENS as HTCondor's own library makes them, through the C++ function that its commands call.

    CONDOR_CONFIG=... python -m tests.conformance.idtoken_reference < orders.json > tokens.json

It is a program of its own because the library reads the configuration once, and ends its process when something is wrong.
"""

import ctypes
import sys
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Final

import msgspec

_GENERATE: Final = (
    "_ZN18Condor_Auth_Passwd14generate_tokenERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEES7_RKSt6vector"
    "IS5_SaIS5_EElbRS5_iP11CondorErrorPKN7classad7ClassAdE"
)
"""`Condor_Auth_Passwd::generate_token` of HTCondor 25.14."""


class Order(msgspec.Struct):
    """One token."""

    identity: str
    key: str
    levels: list[str] = []
    lifetime: int = -1


class _String(ctypes.Structure):
    """
    `std::string` of GCC: where the characters are, how many, and room for a few or the size of the room.
    """

    _fields_ = (("data", ctypes.c_void_p), ("length", ctypes.c_size_t), ("room", ctypes.c_size_t * 2))


class _Vector(ctypes.Structure):
    """`std::vector`: its beginning, its end, and the end of its room."""

    _fields_ = (("begin", ctypes.c_void_p), ("end", ctypes.c_void_p), ("room", ctypes.c_void_p))


def library() -> Path | None:
    """The file of HTCondor's library in this environment, if it has the function."""
    try:
        found = files("htcondor") or []
    except PackageNotFoundError:
        return None
    return next(
        (Path(str(each.locate())) for each in found if each.name.startswith("libcondor_utils_25_14")), None
    )


def generated(path: Path, orders: list[Order]) -> list[str | None]:
    """The tokens; None where the library makes none."""
    __import__("htcondor2")  # reads the configuration, and loads the libraries that this one needs
    function = getattr(ctypes.CDLL(str(path)), _GENERATE)
    function.restype = ctypes.c_bool
    kept: list[object] = []  # until the function has returned

    def text(value: str) -> _String:
        data = ctypes.create_string_buffer(value.encode())
        kept.append(data)
        return _String(
            ctypes.addressof(data), len(value.encode()), (ctypes.c_size_t * 2)(len(value.encode()), 0)
        )

    def one(order: Order) -> str | None:
        levels = (_String * max(len(order.levels), 1))(*[text(level) for level in order.levels])
        begin = ctypes.addressof(levels)
        end = begin + len(order.levels) * ctypes.sizeof(_String)
        made = _String()
        made.data = ctypes.addressof(made) + _String.room.offset
        identity, key, vector = text(order.identity), text(order.key), _Vector(begin, end, end)
        done = function(
            ctypes.byref(identity),
            ctypes.byref(key),
            ctypes.byref(vector),
            ctypes.c_long(order.lifetime),
            ctypes.c_bool(False),
            ctypes.byref(made),
            0,
            None,
            None,
        )
        return ctypes.string_at(made.data, made.length).decode() if done else None

    return [one(order) for order in orders]


def main() -> None:
    path = library()
    assert path is not None, "HTCondor's Python package is installed"
    orders = msgspec.json.decode(sys.stdin.buffer.read(), type=list[Order])
    sys.stdout.write(msgspec.json.encode(generated(path, orders)).decode())


if __name__ == "__main__":
    main()
