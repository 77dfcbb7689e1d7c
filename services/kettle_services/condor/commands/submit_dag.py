"""condor_submit_dag: it is not there yet, and says so to programs that look for it."""

from typing import Final

from kettle_services.condor.errors import ToolError

HELP: Final = {
    "condor_submit_dag": """\
usage: condor_submit_dag

This version of Kettle has no DAGMan: the command says so and ends with status 1.
Jobs that do not wait for each other go into one submit description, with a queue statement of many items.
""",
}


def run(_name: str, _words: list[str]) -> int:
    """Refuse."""
    raise ToolError(
        "ERROR: condor_submit_dag is not available in this version of Kettle, which has no DAGMan yet; nothing was "
        "submitted.  Submit the nodes with condor_submit, and wait for them with condor_wait"
    )
