"""
What a run of a workflow came to, as `DAG.metrics`: JSON with a line for each figure.

Pure.  The layout is version 1 of HTCondor's, whose `jobs` are nodes.
"""

import msgspec


class Metrics(msgspec.Struct, frozen=True, kw_only=True):
    """The figures in the order of the file; times in seconds since the epoch."""

    client: str = "condor_dagman"
    version: str
    type: str = "metrics"
    start_time: float
    end_time: float
    duration: float
    exitcode: int
    dagman_id: str
    parent_dagman_id: str = ""
    rescue_dag_number: int
    jobs: int
    jobs_failed: int
    jobs_succeeded: int
    dag_jobs: int
    dag_jobs_failed: int
    dag_jobs_succeeded: int
    total_jobs: int
    total_jobs_run: int
    graph_height: int
    graph_width: int
    graph_num_edges: int
    graph_num_vertices: int
    dag_status: int = msgspec.field(name="DagStatus")


def text(metrics: Metrics) -> str:
    """The file; each figure has a line, for those who look for one with a regular expression."""
    said = msgspec.to_builtins(metrics)
    lines = [f'    "{name}":{_value(value)}' for name, value in said.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _value(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, float) else msgspec.json.encode(value).decode()
