"""
HTCondor's own code for map files and access lists, run in a process of its own: what it says to questions, as JSON.

It is in the library that comes with the package htcondor; its classes are C++, so that strings and objects are laid out here.
`python access_reference.py < questions`: `{"maps": [[file, [[method, text], ...]], ...]}`, or
`{"access": [[settings, [[level, address, user], ...]], ...]}`, as a schedd decides.
"""

import ctypes
import importlib
import json
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

import pytest

LEVELS: Final = (
    "ALLOW", "READ", "WRITE", "NEGOTIATOR", "ADMINISTRATOR", "CONFIG", "DAEMON", "SOAP", "DEFAULT", "CLIENT",
    "ADVERTISE_STARTD", "ADVERTISE_SCHEDD", "ADVERTISE_MASTER",
)  # fmt: skip
"""In the order of HTCondor's numbers."""
_SCHEDD: Final = 4
"""HTCondor's number of this subsystem."""
_OBJECT: Final = 64 * 1024
"""Bytes for an object of which only the size is not known."""
_TEXT: Final = "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"


def ask(question: Mapping[str, object]) -> list[Any]:
    """The answers; skips the test where the package is not installed."""
    pytest.importorskip(
        "htcondor2", reason="package htcondor, the reference, exists for Linux on x86-64 only"
    )
    done = subprocess.run(
        [sys.executable, __file__],
        input=json.dumps(question),
        env={"CONDOR_CONFIG": "/dev/null", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return cast("list[Any]", json.loads(done.stdout.splitlines()[-1]))


class _Text:
    """A `std::string` of GNU's library: pointer, length, and room for 15 bytes or a capacity."""

    def __init__(self, text: str = "") -> None:
        data = text.encode()
        self.at = ctypes.create_string_buffer(32)
        inside = ctypes.addressof(self.at) + 16
        if len(data) < 16:
            struct.pack_into("QQ", self.at, 0, inside, len(data))
            ctypes.memmove(inside, data + b"\0", len(data) + 1)
        else:
            self._kept = ctypes.create_string_buffer(data)
            struct.pack_into("QQQ", self.at, 0, ctypes.addressof(self._kept), len(data), len(data))

    @property
    def value(self) -> str:
        pointer, length = struct.unpack_from("QQ", self.at, 0)
        return ctypes.string_at(pointer, length).decode()


def _maps(
    library: Any, questions: Sequence[tuple[str, Sequence[tuple[str, str]]]]
) -> Iterator[list[str | None]]:
    read = library[f"_ZN7MapFile25ParseCanonicalizationFileERK{_TEXT}bbb"]
    find = library[f"_ZN7MapFile19GetCanonicalizationERK{_TEXT}S7_RS5_"]
    for file, asked in questions:
        made = ctypes.create_string_buffer(_OBJECT)
        library["_ZN7MapFileC1Ev"](made)
        literals, includes, prefixes = True, True, False
        path = _Text(file)
        read(made, path.at, literals, includes, prefixes)
        found: list[str | None] = []
        for words in asked:
            method, text, result = _Text(words[0]), _Text(words[1]), _Text()
            status = find(made, method.at, text.at, result.at)
            found.append(result.value if status == 0 else None)
        yield found


def _access(
    library: Any,
    parameters: Any,
    questions: Sequence[tuple[Mapping[str, str], Sequence[tuple[str, str, str]]]],
) -> Iterator[list[bool]]:
    verify = library[f"_ZN8IpVerify6VerifyE12DCpermissionRK15condor_sockaddrPKcR{_TEXT}SC_"]
    parameters["NO_DNS"] = "True"  # it would ask for the names of all addresses
    library["_Z15set_mySubSystemPKcb13SubsystemType"](b"SCHEDD", True, _SCHEDD)
    for settings, asked in questions:
        for name, value in settings.items():
            parameters[name] = value
        made = ctypes.create_string_buffer(_OBJECT)
        library["_ZN8IpVerifyC1Ev"](made)
        library["_ZN8IpVerify4InitEv"](made)
        yield [_verified(made, verify, *each) for each in asked]


def _verified(made: object, verify: Any, level: str, address: str, user: str) -> bool:
    where = ctypes.create_string_buffer(256)
    content = struct.pack("=H", socket.AF_INET) + struct.pack("!H", 9618) + socket.inet_aton(address)
    ctypes.memmove(where, content, len(content))
    allowed, denied = _Text(), _Text()
    return bool(verify(made, LEVELS.index(level), where, user.encode(), allowed.at, denied.at) == 1)


def main() -> None:
    htcondor2: Any = importlib.import_module("htcondor2")

    question = json.load(sys.stdin)
    place = Path(htcondor2.__file__).parents[1] / "htcondor.libs"
    library = ctypes.CDLL(str(next(place.glob("libcondor_utils*"))))
    if "maps" in question:
        answers: list[Any] = list(_maps(library, question["maps"]))
    else:
        answers = list(_access(library, htcondor2.param, question["access"]))
    print(json.dumps(answers))  # noqa: T201 - the answer to who started it


if __name__ == "__main__":
    main()
