#!/usr/bin/env python3
# /// script
# requires-python = ">=3.10"
# dependencies = ["ipyparallel==9.2.0"]
# ///
"""ipyparallel: a controller and engines that are jobs, by its HTCondor launchers, compute and are removed."""

import os
import subprocess
import sys

from proof import prove, until

TEMPLATE = """\
universe            = vanilla
executable          = {bin}/{program}
transfer_executable = False
arguments           = "{{program_args}}"
getenv              = True
log                 = {program}.log
output              = {program}.$(Process).out
error               = {program}.$(Process).err
request_memory      = 150
request_disk        = 1MB
queue {{n}}
"""
"""
What its documentation asks a site to set: by the built-in templates a job would neither find `ipengine` nor know its cluster,
which ipyparallel tells in the environment.
"""


def drive(options):
    """Drive an unmodified ipyparallel Cluster with HTCondorControllerLauncher and HTCondorEngineSetLauncher."""
    import ipyparallel
    from traitlets.config import Config

    config = Config()
    here = os.path.dirname(sys.executable)
    for launcher, program in (
        (config.HTCondorControllerLauncher, "ipcontroller"),
        (config.HTCondorEngineSetLauncher, "ipengine"),
    ):
        launcher.batch_template = TEMPLATE.format(bin=here, program=program)
    cluster = ipyparallel.Cluster(
        controller="htcondor",
        engines="htcondor",
        n=2,
        config=config,
        profile_dir=os.path.abspath("profile"),
        send_engines_connection_env=True,
    )
    proven = []
    with cluster as client:
        client.wait_for_engines(2, timeout=options.timeout)
        assert client[:].map_sync(lambda n: n * n, range(20)) == [n * n for n in range(20)]
        proven.append("a map over two engines")
        where = client[:].apply_sync(lambda: __import__("os").environ.get("_CONDOR_JOB_AD", ""))
        assert all(where) and len(set(where)) == 2, where
        assert client.load_balanced_view().map_sync(abs, range(-5, 0)) == [5, 4, 3, 2, 1]
        proven.append("each engine is a job")
        assert len(_queue()) == 3, _queue()
    until("the removal", lambda: not _queue(), options.timeout)
    proven.append("controller and engines are removed with the cluster")
    return f"ipyparallel {ipyparallel.__version__}: " + "; ".join(proven)


def _queue():
    said = subprocess.run(
        ["condor_q", "-af:j", "Cmd", "JobStatus"], capture_output=True, text=True, check=True, timeout=60
    )
    return [line for line in said.stdout.splitlines() if "/ipengine" in line or "/ipcontroller" in line]


if __name__ == "__main__":
    prove(drive, ("condor_submit", "condor_rm", "condor_q"))
