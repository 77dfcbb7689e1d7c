#!/usr/bin/env python3
# /// script
# requires-python = ">=3.11"
# dependencies = ["snakemake==9.27.1", "snakemake-executor-plugin-htcondor==0.3.0"]
# ///
"""Snakemake: rules with dependencies are jobs, by its HTCondor executor plugin as it is; a failure is told as one."""

import os
import shutil
import subprocess
import sys

from proof import prove

WORKFLOW = """\
rule all:
    input: "total.txt"

rule number:
    output: "numbers/{n}.txt"
    resources: mem_mb=100, disk_mb=50
    shell: "echo {wildcards.n} > {output}"

rule square:
    input: "numbers/{n}.txt"
    output: "squares/{n}.txt"
    resources: mem_mb=100, disk_mb=50
    shell: "echo $(( $(cat {input}) * $(cat {input}) )) > {output}"

rule total:
    input: expand("squares/{n}.txt", n=range(2, 4))
    output: "total.txt"
    resources: mem_mb=100, disk_mb=50
    run:
        numbers = [int(open(each).read()) for each in input]
        with open(output[0], "w") as file:
            print(sum(numbers), file=file)

rule broken:
    output: "never.txt"
    resources: mem_mb=100, disk_mb=50
    shell: "exit 3"
"""


def drive(options):
    """Drive an unmodified Snakemake with a shared file system, its default."""
    import snakemake
    import snakemake_executor_plugin_htcondor  # noqa: F401

    with open("Snakefile", "w") as file:
        file.write(WORKFLOW)
    proven = []
    done = run(options)
    assert done.returncode == 0, done.stderr[-3000:]
    assert open("total.txt").read() == "13\n"
    assert done.stderr.count("submitted to HTCondor Cluster ID") == 5, done.stderr[-3000:]
    assert done.stderr.count("was successful.") == 5, done.stderr[-3000:]
    proven.append("five jobs of three rules, in the order of what they need")

    again = run(options)
    assert again.returncode == 0 and "Nothing to be done" in again.stderr, again.stderr[-3000:]
    proven.append("what is done is not done again")

    os.mkdir("elsewhere")  # with a log of its own: a second run reads the first one's before it is set up, now and then
    os.chdir("elsewhere")
    shutil.copy("../Snakefile", ".")
    failed = run(options, "never.txt")
    assert failed.returncode == 1, failed.stderr[-3000:]
    assert "Error in rule broken" in failed.stderr, failed.stderr[-3000:]
    assert "completed but failed with ExitCode 1" in failed.stderr, failed.stderr[-3000:]
    proven.append("the failure of a rule is told, and ends the workflow with an error")
    return f"snakemake {snakemake.__version__}: " + "; ".join(proven)


def run(options, *targets):
    words = ["--executor", "htcondor", "--jobs", "4", "--seconds-between-status-checks", "1", "--nocolor"]
    return subprocess.run(
        [sys.executable, "-m", "snakemake", *words, "--", *targets],
        capture_output=True,
        text=True,
        timeout=options.timeout,
    )


if __name__ == "__main__":
    prove(drive)
