"""
Running a job on this machine: sandbox, process tree, limits, measurement, and the zygote that forks starters.

Shared by the startd and its starters.  Everything here is synchronous: a starter is one thread around `poll`, because an
asyncio loop would cost each job three times what its own `fork` costs (measured 2.1 ms of CPU against 0.5 ms).
"""

from kettle.execution.attempts.job_spec import Account, AttemptId, JobSpec, StoredReport
from kettle.execution.processes.launch import LaunchError, Program, launch
from kettle.execution.sandbox.directory import Sandbox
from kettle.execution.system.cgroup import Cgroup
from kettle.execution.system.cgroup_layout import CgroupLayout, probe_cgroups

__all__ = [
    "Account",
    "AttemptId",
    "Cgroup",
    "CgroupLayout",
    "JobSpec",
    "LaunchError",
    "Program",
    "Sandbox",
    "StoredReport",
    "launch",
    "probe_cgroups",
]
