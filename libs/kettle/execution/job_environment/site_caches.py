"""
How programs of jobs come through the caches of a site, where its rules say `programs=yes`: variables, and the plug-in directory of XRootD's
client.

The client of XRootD finds its proxy plug-in by `XRD_PLUGINCONFDIR`; a configuration of the system for all URLs goes before that
directory, and `XRD_PLUGIN` before both, so both are set.
"""

from collections.abc import Sequence
from typing import Final

from kettle.execution.attempts.job_spec import Input
from kettle.transfer.data_rules import DataRule
from kettle.transfer.file_lists import scheme_of

DIRECTORY: Final = ".xrootd_plugins"
"""In the sandbox: what is there a container sees as well."""
_PLUGIN: Final = "libXrdClProxyPlugin.so"
_TEXT: Final = f"url = *\nlib = {_PLUGIN}\nenable = true\n".encode()


def cache_files(rules: Sequence[DataRule]) -> list[Input]:
    """What has to be in the sandbox for that."""
    if _rule(rules, "root") is None:
        return []
    return [Input(name=f"{DIRECTORY}/kettle.conf", mode=0o644, data=_TEXT)]


def cache_variables(rules: Sequence[DataRule], sandbox: str) -> dict[str, str]:
    """What programs look at, which a job may set otherwise."""
    found: dict[str, str] = {}
    if (rule := _rule(rules, "root")) is not None:
        found = {
            "XRD_PLUGINCONFDIR": f"{sandbox}/{DIRECTORY}",
            "XRD_PLUGIN": _PLUGIN,
            "XROOT_PROXY": f"{rule.cache.rstrip('/')}//",
            # It takes a copy's place on this machine, file://localhost/..., for one more URL.
            "XROOT_PROXY_EXCL_DOMAINS": ",".join(["localhost", *_without(rules, "root")]),
            # xrdcp reads pages with checksums, which the plug-in does not pass on: without this each copy through it fails.
            "XRD_CPUSEPGWRTRD": "0",
        }
    for scheme in ("http", "https"):
        if (rule := _rule(rules, scheme)) is not None:
            found[f"{scheme}_proxy"] = rule.cache
            if hosts := [*_without(rules, "http"), *_without(rules, "https")]:
                found["no_proxy"] = ",".join(dict.fromkeys(hosts))
    return found


def _rule(rules: Sequence[DataRule], scheme: str) -> DataRule | None:
    """The rule for all URLs of a method that is for programs too."""
    return next((rule for rule in rules if rule.programs and scheme_of(rule.pattern) == scheme), None)


def _without(rules: Sequence[DataRule], scheme: str) -> list[str]:
    """Hosts for which the site wants no cache of its own."""
    found: list[str] = []
    for rule in rules:
        host = rule.pattern.partition("://")[2].partition("/")[0].partition(":")[0]
        if rule.form in {"none", "machine"} and scheme_of(rule.pattern) == scheme and host.strip("*?"):
            found.append(host.lstrip("*"))
    return found
