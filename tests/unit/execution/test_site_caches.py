"""How programs of jobs come through the caches of a site."""

from kettle.execution.job_environment.site_caches import DIRECTORY, cache_files, cache_variables
from kettle.transfer.data_rules import read_rules


def test_programs_are_told_only_where_the_rules_say_so() -> None:
    """
    A rule for Kettle's own transfers alone changes no job's environment, and puts nothing into its sandbox.
    """
    rules = read_rules(["root://*: cache=root://x:1094", "http://*: cache=http://squid:3128"])
    assert ({}, []) == (cache_variables(rules, "/sandbox"), cache_files(rules))


def test_the_client_of_xrootd_finds_its_proxy_plugin() -> None:
    """Hosts without a cache are left out, and so is this machine, where copies go."""
    rules = read_rules([
        "root://*.own.org/*: cache=none",
        "root://*: cache=root://x:1094/, form=url, programs=yes",
    ])  # fmt: skip
    assert {
        "XRD_PLUGINCONFDIR": f"/sandbox/{DIRECTORY}",
        "XRD_PLUGIN": "libXrdClProxyPlugin.so",
        "XROOT_PROXY": "root://x:1094//",
        "XROOT_PROXY_EXCL_DOMAINS": "localhost,.own.org",
        "XRD_CPUSEPGWRTRD": "0",
    } == cache_variables(rules, "/sandbox")
    (file,) = cache_files(rules)
    assert (f"{DIRECTORY}/kettle.conf", b"lib = libXrdClProxyPlugin.so") == (
        file.name, (file.data or b"").splitlines()[1],
    )  # fmt: skip


def test_proxies_of_the_web() -> None:
    """One for each method that has a rule, and none for what the site keeps out."""
    rules = read_rules(
        ["https://own.org/*: cache=machine", "http://*: cache=http://squid:3128, programs=yes"]
    )
    assert {"http_proxy": "http://squid:3128", "no_proxy": "own.org"} == cache_variables(rules, "/sandbox")
