"""condor_gpu_discovery: the GPUs of this machine, in the form that a startd reads."""

import re
import sys
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from kettle_services.condor.arguments.grammar import Option, TypedOption, understood
from kettle_services.condor.errors import ToolError, WordsError
from kettle_wire.ads.types import Ad, Expr, Scalar

OPTIONS: Final = {
    "by-index": Option(),
    "config": Option(),
    "cron": Option(),
    "cuda": Option(),
    "cudart": Option(),
    "device": Option(takes=1),
    "diagnostic": Option(),
    "dirty-environment": Option(),
    "divide": Option(),
    "dynamic": Option(),
    "extra": Option(),
    "hip": Option(),
    "mixed": Option(),
    "nested": Option(),
    "not-nested": Option(),
    "nvcuda": Option(),
    "opencl": Option(),
    "packed": Option(),
    "prefix": Option(takes=1),
    "properties": Option(),
    "repeat": Option(),
    "short-uuid": Option(),
    "simulate": Option(letters=True),
    "tag": Option(takes=1),
    "uuid": Option(),
    "verbose": Option(),
}
HELP: Final = {
    "condor_gpu_discovery": """\
usage: condor_gpu_discovery [options]

NVIDIA's GPUs of this machine, as nvidia-smi tells of them, or else the driver: what a startd finds too.  The output is what
`discovery` of [startd] (MACHINE_RESOURCE_INVENTORY_GPUs) reads.

  -properties            what is known of them, not only which there are
  -extra                 the same with clock and cores, which only simulated ones have: nvidia-smi does not tell them
  -not-nested            a property a line, not an ad for each GPU
  -mixed                 each with all its properties, also those that all of them have
  -uuid, -by-index       called by their whole ids, or CUDA0, CUDA1, ...; not by the first 8 digits of their ids
  -tag TAG               for Detected<TAG> (GPUs)
  -prefix TEXT           with -not-nested, before properties of all of them; and before the number of -by-index (CUDA)
  -config                as statements of a configuration, with NUM_DETECTED_<TAG>
  -simulate[:D[,N[,D,N ...]]]   no real ones, but N of each kind: 0 GeForce GT 330, 1 GeForce GTX 480, 2 Tesla V100,
                         3 TITAN RTX, 4 A100, 5 and 6 parts of an A100 with 20 and 5 GB
  -cuda, -nested, -short-uuid, -verbose, -diagnostic, -nvcuda, -cudart, -dirty-environment   change nothing here
""",
}
_REFUSED: Final = {
    "cron": "of a device that is there its startd knows the rest",
    "device": "all devices are printed",
    "divide": "a device is given to one job at a time",
    "dynamic": "nvidia-smi shows what changes",
    "hip": "only NVIDIA's GPUs are looked for",
    "opencl": "only NVIDIA's GPUs are looked for",
    "packed": "a device is given to one job at a time",
    "repeat": "a device is given to one job at a time",
}
_LETTERS: Final = {"by-index": "index", "uuid": "uuid", "short-uuid": "short"}
_NOT_NAME: Final = re.compile(r"[^A-Za-z0-9_]")
_SHORT: Final = len("GPU-") + 8
_MOST: Final = 64
"""Simulated devices."""


class Simulated(msgspec.Struct, frozen=True):
    """A kind of GPU that is only said to be there, with HTCondor's figures."""

    name: str
    capability: float
    memory: int
    clock: float
    units: int
    ecc: bool
    version: int


KINDS: Final = (
    Simulated("GeForce GT 330", 1.2, 1024, 1340.0, 12, ecc=False, version=6000),
    Simulated("GeForce GTX 480", 2.0, 1536, 1400.0, 15, ecc=False, version=4020),
    Simulated("Tesla V100-PCIE-16GB", 7.0, 24220, 1380.0, 80, ecc=True, version=11020),
    Simulated("TITAN RTX", 7.5, 24220, 1770.0, 72, ecc=False, version=11020),
    Simulated("A100-SXM4-40GB", 8.0, 40536, 1410.0, 42, ecc=True, version=11020),
    Simulated("NVIDIA A100-SXM4-40GB MIG 3g.20gb", 8.0, 20096, 1410.0, 42, ecc=True, version=11020),
    Simulated("NVIDIA A100-SXM4-40GB MIG 1g.5gb", 8.0, 4864, 1410.0, 14, ecc=True, version=11040),
)


class _Wanted(msgspec.Struct):
    """What was typed."""

    properties: bool = False
    extra: bool = False
    nested: bool = True
    mixed: bool = False
    config: bool = False
    names: str = "short"
    tag: str = "GPUs"
    prefix: str = "CUDA"
    simulated: str | None = None


def run(_name: str, words: list[str]) -> int:
    """Print them."""
    wanted = _Wanted()
    for given in understood(words, OPTIONS):
        _take(wanted, given)
    if wanted.simulated is not None:
        found = simulated(wanted.simulated, extra=wanted.extra)
    else:
        from kettle.execution.system.gpus import find_gpus

        found = find_gpus() or {}
    sys.stdout.writelines(f"{line}\n" for line in _lines(found, wanted))
    return 0


def _take(wanted: _Wanted, given: TypedOption) -> None:
    match given.name:
        case "":
            raise WordsError(f"'{given.values[0]}' is no option")
        case "properties" | "mixed" | "config" as name:
            setattr(wanted, name, True)
        case "extra":
            wanted.properties = wanted.extra = True
        case "nested" | "not-nested":
            wanted.nested = given.name == "nested"
        case "tag" | "prefix" as name:
            if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", given.values[0]):
                raise WordsError(f"-{name} {given.values[0]}: it is a word of letters, digits and _")
            setattr(wanted, name, given.values[0])
        case "simulate":
            wanted.simulated = given.letters
        case name if name in _LETTERS:
            wanted.names = _LETTERS[name]
        case refused if refused in _REFUSED:
            raise ToolError(f"condor_gpu_discovery: -{refused} is not carried out: {_REFUSED[refused]}")
        case _:
            pass


def simulated(said: str, *, extra: bool = False) -> dict[str, Ad]:
    """
    The devices of `D,N,D,N`, by ids as HTCondor's simulation gives them; N is 1 where it is not said.

    Raises WordsError.
    """
    if not re.fullmatch(r"(\d{1,3}(,\d{1,3})*)?", said, re.ASCII):
        raise WordsError(f"-simulate:{said}: write numbers of kinds and how many of each, as in 0,1,3,2")
    numbers = [int(each) for each in said.split(",")] if said else [0]
    found: dict[str, Ad] = {}
    for kind, count in zip(numbers[::2], [*numbers[1::2], 1], strict=False):
        if kind >= len(KINDS):
            raise WordsError(f"-simulate: there is no kind {kind}; they are 0 to {len(KINDS) - 1}")
        if len(found) + count > _MOST:
            raise WordsError(f"-simulate: at most {_MOST} devices")
        for _ in range(count):
            number = len(found)
            id_ = f"GPU-{(0xA0 + 0x11 * number) & 0xFF:02x}223334-4445-5667-899a-{number:012x}"
            found[id_] = _properties(KINDS[kind], number, extra=extra)
    return found


def _properties(kind: Simulated, number: int, *, extra: bool) -> Ad:
    ad: Ad = {
        "Capability": kind.capability,
        "DeviceName": kind.name,
        "DevicePciBusId": f"0000:{0x40 + number:02x}:00.0",
        "DriverVersion": kind.version // 1000 + kind.version % 1000 / 100,
        "ECCEnabled": kind.ecc,
        "GlobalMemoryMb": kind.memory,
        "MaxSupportedVersion": kind.version,
    }
    return ad | {"ClockMhz": kind.clock, "ComputeUnits": kind.units} if extra else ad


# -- what is printed -----------------------------------------------------------------------------------------------------


def _lines(found: Mapping[str, Ad], wanted: _Wanted) -> Iterator[str]:
    devices = _called(found, wanted)
    listed = ", ".join(devices)
    if not devices:
        yield f"Detected{wanted.tag}=0"
    else:
        yield f"Detected{wanted.tag}={listed}" if wanted.config else f'Detected{wanted.tag}="{listed}"'
    if wanted.config:
        yield f"NUM_DETECTED_{wanted.tag}={len(devices)}"
    if not wanted.properties or not devices:
        return
    common = {} if wanted.mixed else _common(devices)
    if wanted.nested:
        if common:
            yield f"Common=[ {_pairs(common)}]"
    else:
        yield from (f"{wanted.prefix}{name}={_literal(common[name])}" for name in sorted(common))
    for id_, ad in devices.items():
        own = {name: value for name, value in ad.items() if name not in common}
        name = _NOT_NAME.sub("_", id_)
        if wanted.nested:
            yield f"{name}=[ id={_literal(id_)}; {_pairs(own)}]"
        else:
            yield from (f"{name}{property_}={_literal(own[property_])}" for property_ in sorted(own))


def _called(found: Mapping[str, Ad], wanted: _Wanted) -> dict[str, Ad]:
    """By the name that is wanted; by the whole id where eight digits of it are not one device's alone."""
    short = wanted.names == "short" and len({id_[:_SHORT] for id_ in found}) == len(found)
    devices: dict[str, Ad] = {}
    for number, (id_, ad) in enumerate(found.items()):
        name = f"{wanted.prefix}{number}" if wanted.names == "index" else id_[:_SHORT] if short else id_
        devices[name] = {**ad, "DeviceUuid": id_.removeprefix("GPU-")}
    return devices


def _common(devices: Mapping[str, Ad]) -> Ad:
    """What all of them have; of one alone everything, as with HTCondor."""
    first, *others = devices.values()
    return {name: value for name, value in first.items() if all(ad.get(name) == value for ad in others)}


def _pairs(ad: Ad) -> str:
    return "".join(f"{name}={_literal(ad[name])}; " for name in sorted(ad))


def _literal(value: Scalar) -> str:
    from kettle.classad.ad import text_of

    match value:
        case float():
            return repr(value)
        case Expr(expr=text):
            return text
        case _:
            return text_of(value)
