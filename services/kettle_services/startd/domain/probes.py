"""What the probes of a machine make its slots say, and whether it takes jobs."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from kettle.execution.site_probes.declared import (
    CHECKED,
    AnyProbe,
    ContainerProbe,
    CvmfsProbe,
    Finding,
    ImageProbe,
    XrootdProbe,
)
from kettle_wire.ads import Ad

_UNTRIED: Final = Finding(why="it has not been tried since the startd started")
_LONGEST: Final = 1000


def probe_trouble(probes: Sequence[AnyProbe], found: Mapping[str, Finding]) -> str:
    """
    Why the machine takes no jobs of the pool, by what was found, by label; empty: all that it requires is there.
    """
    whys = [
        f"{probe.label}: {finding.why}"
        for probe in probes
        if probe.required and (finding := found.get(probe.label, _UNTRIED)).why
    ]
    return f"a probe of the machine fails: {'; '.join(whys)}"[:_LONGEST] if whys else ""


def probe_attributes(probes: Sequence[AnyProbe], found: Mapping[str, Finding], taken: Collection[str]) -> Ad:
    """
    What is advertised; `taken`: names, in lower case, that slots have for something else, and that no probe may say.
    """
    ad: Ad = {}
    good: list[AnyProbe] = []
    failed: list[str] = []
    for probe in probes:
        if (finding := found.get(probe.label)) is None:
            continue
        ad |= {name: value for name, value in finding.attributes.items() if name.lower() not in taken}
        if finding.why:
            failed.append(f"{probe.label}: {finding.why}")
        else:
            good.append(probe)
        if isinstance(probe, CvmfsProbe):
            ad[f"CVMFS_{probe.spelt}_{CHECKED}"] = int(finding.at)
        if isinstance(probe, ContainerProbe) and finding.why:
            ad |= {"HasContainer": False, "HasSandboxImage": False, "HasSIF": False}
    ad |= _repositories(probes, good) | _caches(probes, good) | _images(probes, good)
    ad |= {"ProbesFailed": "; ".join(failed)[:_LONGEST]} if failed else {}
    if found:
        ad[f"Probes{CHECKED}"] = int(min(each.at for each in found.values()))
    return ad


def _repositories(probes: Sequence[AnyProbe], good: Collection[AnyProbe]) -> Ad:
    """
    `HasCVMFS` is true only if all of them are there: a job that asks for it does not say which it means.
    """
    repositories = [probe for probe in probes if isinstance(probe, CvmfsProbe)]
    if not repositories:
        return {}
    here = [probe.repository for probe in repositories if probe in good]
    return {
        "HasCVMFS": len(here) == len(repositories),
        "CVMFSRepositories": ",".join(here),
        **{f"HAS_CVMFS_{probe.spelt}": probe in good for probe in repositories},
    }


def _caches(probes: Sequence[AnyProbe], good: Collection[AnyProbe]) -> Ad:
    caches = [probe for probe in probes if isinstance(probe, XrootdProbe)]
    here = [probe.url for probe in caches if probe in good]
    ad: Ad = {"HasXRootDCache": bool(here)} if caches else {}
    if here:
        ad["XRootDCache"] = here[0]
    return ad


def _images(probes: Sequence[AnyProbe], good: Collection[AnyProbe]) -> Ad:
    images = [probe for probe in probes if isinstance(probe, ImageProbe)]
    here = [probe.path for probe in images if probe in good]
    return {"ContainerImages": ",".join(here)} if images else {}
