#!/usr/bin/env python3
# /// script
# requires-python = ">=3.11"
# dependencies = ["lsst-ctrl-bps-htcondor==30.2026.300"]
# ///
"""
LSST's batch service: its HTCondor plugin submits a command and a workflow, and reports on them, as they are.
"""

import os
import re
import subprocess

from proof import prove, until

COMMAND = """\
operator: ada
project: quick
campaign: start
uniqProcName: quick_start
submitPath: {here}/quick
customJob:
  executable: /bin/echo
  arguments: "hello"
requestMemory: 64
"""
WORKFLOW = """\
operator: ada
project: quick
campaign: start
payloadName: diamond
computeSite: here
uniqProcName: diamond
wmsServiceClass: lsst.ctrl.bps.htcondor.HTCondorService
workflowName: diamond
workflowPath: {here}/diamond
submitPath: {here}/diamond
requestMemory: 64
"""
SERVICE = "lsst.ctrl.bps.htcondor.HTCondorService"


def drive(options):
    """
    Drive bps from the command line, and its interface for programs with a workflow whose jobs wait for each
    other.
    """
    import lsst.ctrl.bps.htcondor  # noqa: F401

    os.environ |= {"BPS_WMS_SERVICE_CLASS": SERVICE, "USER": "ada"}
    here = os.getcwd()
    with open("quick.yaml", "w") as file:
        file.write(COMMAND.format(here=here))
    ping = bps(options, "ping")
    assert ping.returncode == 0, ping.stderr[-3000:]
    submitted = bps(options, "submitcmd", "quick.yaml")
    assert submitted.returncode == 0, submitted.stderr[-3000:]
    assert re.search(r"^Run Id: [0-9]+\.0$", submitted.stdout, re.MULTILINE), submitted.stdout
    until("the end of the command", lambda: state(options, "quick") == "SUCCEEDED", options.timeout)
    proven = ["a command is submitted, runs and is reported on"]

    diamond(here)
    until("the end of the workflow", lambda: state(options, "diamond") == "SUCCEEDED", options.timeout)
    with open("order") as file:
        assert file.read().split() in (["A", "B", "C", "D"], ["A", "C", "B", "D"])
    report = bps(options, "report", "--id", f"{here}/diamond").stdout
    assert re.search(r"^TOTAL +0 +0 +0 +0 +0 +0 +0 +0 +4 +0 +0 +4$", report, re.MULTILINE), report
    proven.append("a workflow of four jobs runs in its order, and each is counted as it ended")
    return "; ".join(proven)


def diamond(here):
    """Submit four jobs of which two wait for the first, and the last for these two."""
    from lsst.ctrl.bps import BpsConfig, GenericWorkflow, GenericWorkflowExec, GenericWorkflowJob
    from lsst.ctrl.bps.prepare import prepare
    from lsst.ctrl.bps.submit import submit

    with open("diamond.yaml", "w") as file:
        file.write(WORKFLOW.format(here=here))
    os.mkdir("diamond")
    config = BpsConfig("diamond.yaml")
    workflow = GenericWorkflow("diamond")
    with open("step.sh", "w") as file:
        file.write(f"#!/bin/sh\necho $1 >> {here}/order\n")
    os.chmod("step.sh", 0o755)
    step = GenericWorkflowExec(name="step", src_uri=f"{here}/step.sh", transfer_executable=False)
    for name in "ABCD":
        job = GenericWorkflowJob(name=name, label=f"step{name}", executable=step)
        job.arguments = name
        job.request_memory, job.request_cpus = 64, 1
        workflow.add_job(job)
    workflow.add_job_relationships("A", ["B", "C"])
    workflow.add_job_relationships(["B", "C"], "D")
    workflow.run_attrs.update(
        {"bps_isjob": "True", "bps_run": "diamond", "bps_operator": "ada", "bps_runsite": "here"}
    )
    submit(config, prepare(config, workflow, f"{here}/diamond"))


def state(options, directory):
    """What the report of a run says of it."""
    report = bps(options, "report", "--id", os.path.abspath(directory)).stdout
    found = re.search(r"\b(UNREADY|READY|PENDING|RUNNING|SUCCEEDED|FAILED|HELD|DELETED)\b +[0-9]+ ", report)
    return found[1] if found else ""


def bps(options, *words):
    return subprocess.run(
        ["bps", *words], capture_output=True, text=True, timeout=options.timeout, check=False
    )


if __name__ == "__main__":
    prove(drive)
