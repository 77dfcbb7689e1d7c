#!/usr/bin/env python3
# /// script
# requires-python = ">=3.10"
# dependencies = ["psij-python==0.9.11"]
# ///
"""Have an unmodified PSI/J submit jobs, and print the scripts that its batch systems' commands are given.

    psij_directives.py WORKDIR < SPECS

SPECS is a JSON list of {"executor", "nodes", "cpus", "gpus", "exclusive", "memory_mb", "seconds", "queue", "account"}; what is missing
is not asked for.  The commands that submit are programs that keep what they are given.  Prints a JSON list of the scripts.
"""

import datetime
import json
import os
import pathlib
import sys

KEEPER = """\
#!/bin/sh
for last; do :; done
if [ -f "$last" ]; then cat "$last"; else cat; fi >"$KEPT"
echo "{said}"
"""
SAYS = {"sbatch": "Submitted batch job 7", "qsub": "7.server", "bsub": "Job <7> is submitted to queue <normal>."}


def main() -> None:
    place = pathlib.Path(sys.argv[1])
    programs = place / "bin"
    programs.mkdir(parents=True)
    for name, said in SAYS.items():
        (programs / name).write_text(KEEPER.format(said=said))
        (programs / name).chmod(0o755)
    os.environ["PATH"] = f"{programs}:{os.environ['PATH']}"
    os.environ["KEPT"] = str(place / "kept")

    import psij
    from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutorConfig

    config = BatchSchedulerExecutorConfig(work_directory=place / "psij", queue_polling_interval=3600, initial_queue_polling_delay=3600)
    scripts = []
    for spec in json.load(sys.stdin):
        cpus = spec.get("cpus", 1)
        has_cores = spec["executor"] == "slurm"  # elsewhere it asks for as many cores as processes
        resources = psij.ResourceSpecV1(
            node_count=spec.get("nodes", 1),
            processes_per_node=1 if has_cores else cpus,
            cpu_cores_per_process=cpus if has_cores else None,
            gpu_cores_per_process=spec.get("gpus"),
            exclusive_node_use=spec.get("exclusive", False),
            memory=spec["memory_mb"] * 1024 * 1024 if "memory_mb" in spec else None,
        )
        attributes = psij.JobAttributes(queue_name=spec.get("queue"), account=spec.get("account"))
        if "seconds" in spec:
            attributes.duration = datetime.timedelta(seconds=spec["seconds"])
        job = psij.Job(psij.JobSpec(executable="/bin/true", resources=resources, attributes=attributes))
        psij.JobExecutor.get_instance(spec["executor"], config=config).submit(job)
        scripts.append((place / "kept").read_text())
    print(json.dumps(scripts), flush=True)
    os._exit(0)  # it goes on asking for the jobs in threads of its own


if __name__ == "__main__":
    main()
