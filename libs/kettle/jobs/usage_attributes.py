"""What an attempt used, as attributes of its job."""

from kettle_wire.ads.types import Ad
from kettle_wire.attempts import Usage


def in_use(usage: Usage) -> Ad:
    """
    What a live attempt uses, as its worker has last measured it: shown over the ad while the attempt lives.
    """
    ad: Ad = {"RemoteUserCpu": usage.user_cpu, "RemoteSysCpu": usage.system_cpu}
    return ad | measures(usage)


def measures(usage: Usage) -> Ad:
    """What is shown of it while the attempt lives, and afterwards."""
    ad: Ad = {}
    if usage.wall:
        ad["CpusUsage"] = (usage.user_cpu + usage.system_cpu) / usage.wall
    if usage.memory_kib:
        ad["ResidentSetSize"] = usage.memory_kib
        ad["MemoryUsage"] = (usage.memory_kib + 1023) // 1024
    if usage.disk_kib:
        ad["DiskUsage"] = usage.disk_kib
    return ad
