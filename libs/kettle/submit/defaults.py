"""What jobs need that were made without the submit language, where they do not say it."""

from collections.abc import Iterable, Iterator
from typing import Final

from kettle.classad import unparse
from kettle.classad.nodes import Literal
from kettle.submit.submit_machine import Site
from kettle_wire.ads.types import Ad, Expr, Scalar

_VANILLA: Final = 5
_CONTAINERS: Final = ("wantcontainer", "wantdocker")


def default_needs(ad: Ad, columns: Iterable[str], site: Site) -> Ad:
    """
    Requirements, and the requests that these are about, as the submit language has them for who says nothing; nothing for jobs that
    have Requirements, and for those that run on no machine of the pool's.  `columns`: attributes that each job has its own of.
    """
    said: dict[str, Scalar | None] = dict.fromkeys(map(str.lower, columns))
    said |= {name.lower(): value for name, value in ad.items()}
    if "requirements" in said or said.get("jobuniverse", _VANILLA) != _VANILLA:
        return {}
    usual: Ad = {
        "RequestCpus": site.request_cpus,
        "RequestMemory": site.request_memory,
        "RequestDisk": site.request_disk_minimum * 1024,
    }
    found: Ad = {name: value for name, value in usual.items() if name.lower() not in said}
    found["Requirements"] = Expr(" && ".join(_clauses(said, site)))
    return found


def _clauses(said: dict[str, Scalar | None], site: Site) -> Iterator[str]:
    yield f"(TARGET.Arch == {unparse(Literal(site.arch))})"
    if any(said.get(name) is True for name in _CONTAINERS):
        yield "TARGET.HasDocker" if said.get("wantdocker") is True else "TARGET.HasContainer"
    else:
        yield f"(TARGET.OpSys == {unparse(Literal(site.opsys))})"
    for resource in ("Disk", "Memory", "Cpus", "GPUs"):
        if resource != "GPUs" or "requestgpus" in said:
            yield f"(TARGET.{resource} >= Request{resource})"
    mode = said.get("shouldtransferfiles")
    match mode.upper() if isinstance(mode, str) else "":
        case "NO":
            yield "(TARGET.FileSystemDomain == MY.FileSystemDomain)"
        case "IF_NEEDED":
            yield "((TARGET.FileSystemDomain == MY.FileSystemDomain) || (TARGET.HasFileTransfer))"
        case _:
            yield "(TARGET.HasFileTransfer)"
