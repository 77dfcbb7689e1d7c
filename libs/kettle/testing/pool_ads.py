"""Ads like those of a real pool: machines with 120 attributes, jobs of many autoclusters."""

import random
from collections.abc import Iterator
from typing import Final

from kettle_wire.ads.types import Ad, Expr, Scalar

REQUIREMENTS: Final = (
    '(TARGET.Arch == "X86_64") && (TARGET.OpSys == "LINUX") && (TARGET.Memory >= RequestMemory)'
    " && (TARGET.Disk >= RequestDisk) && (TARGET.Cpus >= RequestCpus) && (TARGET.HasFileTransfer)"
)
"""What a submission without requirements of its own asks for: six clauses."""
START: Final = "(RequestCpus <= 64) && (Owner =!= undefined) && (TARGET.ImageSize < 1e12)"
MACHINE_ATTRIBUTES: Final = 120
_SYSTEMS: Final = ("Debian12", "Rocky9", "AlmaLinux9", "Ubuntu24")
_HAS: Final = (
    "FileTransfer",
    "JobDeferral",
    "Vacate",
    "Reconnect",
    "MPI",
    "SelfCheckpointTransfers",
    "IOProxy",
)


def machines(count: int, *, start: str = "true", seed: int = 1) -> Iterator[tuple[str, Ad]]:
    """
    Partitionable slots by key; of their attributes some are their own, most are shared with many others.
    """
    chance = random.Random(seed)  # noqa: S311 - the same ads in every run
    for number in range(count):
        name = f"slot1@node{number:06d}.farm.example.org"
        cores = chance.choice([16, 32, 64, 128])
        ad: Ad = {
            "MyType": "Machine",
            "Name": name,
            "Machine": name.partition("@")[2],
            "MyAddress": f"<10.{number >> 16}.{number >> 8 & 255}.{number & 255}:9618?addrs=10.0.0.1-9618>",
            "Arch": "X86_64",
            "OpSys": "LINUX",
            "OpSysAndVer": chance.choice(_SYSTEMS),
            "State": "Unclaimed",
            "Activity": "Idle",
            "PartitionableSlot": True,
            "Cpus": cores,
            "TotalSlotCpus": cores,
            "Memory": cores * chance.choice([2048, 4096]),
            "Disk": chance.randrange(10**8, 10**9),
            "KFlops": chance.randrange(10**6, 2 * 10**6),
            "Mips": chance.randrange(20_000, 40_000),
            "LoadAvg": round(chance.random() * cores, 2),
            "CondorLoadAvg": round(chance.random() * cores, 2),
            "EnteredCurrentState": 1_760_000_000 + chance.randrange(10**6),
            "Requirements": Expr("START"),
            "START": Expr(start),
            "Rank": 0.0,
            "SlotWeight": Expr("Cpus"),
            "WithinResourceLimits": Expr(
                "(MY.Cpus > 0 && TARGET.RequestCpus <= MY.Cpus && MY.Memory > 0 && TARGET.RequestMemory <= MY.Memory)"
            ),
            "ChildCpus": Expr("{ 1,1,4 }"),
            **{f"Has{feature}": True for feature in _HAS},
        }
        for index in range(MACHINE_ATTRIBUTES - len(ad)):
            kind = index % 4
            ad[f"Site{index:03d}"] = (
                index * 1000 + number % 7 if kind == 0
                else f"value {index}.{number % 5}" if kind == 1
                else index % 3 == 0 if kind == 2
                else index + number % 11 / 4
            )  # fmt: skip
        yield name, ad


def jobs(count: int, *, rank: str = "KFlops", seed: int = 2) -> Iterator[Ad]:
    """One job of each of so many autoclusters."""
    chance = random.Random(seed)  # noqa: S311 - the same
    for number in range(count):
        yield {
            "MyType": "Job",
            "Owner": f"user{number % 50}",
            "RequestCpus": chance.choice([1, 1, 2, 4]),
            "RequestMemory": chance.choice([1000, 2000, 4000, 8000]),
            "RequestDisk": chance.randrange(10**3, 10**6),
            "ImageSize": chance.randrange(10**3, 10**6),
            "Requirements": Expr(REQUIREMENTS),
            "Rank": Expr(rank),
        }


def long_form(ad: Ad) -> str:
    """The ad as `-long` prints it."""
    return "".join(f"{name} = {_text(value)}\n" for name, value in ad.items())


def new_syntax(ad: Ad) -> str:
    """The ad in brackets."""
    return "[ " + "; ".join(f"{name} = {_text(value)}" for name, value in ad.items()) + " ]"


def _text(value: Scalar) -> str:
    if isinstance(value, Expr):
        return value.expr
    if isinstance(value, bool):
        return "true" if value else "false"
    return f'"{value}"' if isinstance(value, str) else repr(value)
