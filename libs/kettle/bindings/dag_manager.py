"""DAGMan: a running DAG is halted, goes on, goes faster or slower."""

from typing import Any, ClassVar, Final

from kettle.bindings.ads import ClassAd
from kettle.bindings.errors import HTCondorException
from kettle.bindings.pool_connections import ask, pool_here
from kettle_wire.workflows import WorkflowOptions

_LIMITS: Final = {
    "max_nodes": ("max_jobs", "DAGMan_MaxJobs"),
    "max_idle": ("max_idle", "DAGMan_MaxIdle"),
    "max_pre": ("max_pre", "DAGMan_MaxPreScripts"),
    "max_hold": ("max_hold", "DAGMan_MaxHoldScripts"),
    "max_post": ("max_post", "DAGMan_MaxPostScripts"),
}
"""By the names of HTCondor's call: the field of `WorkflowOptions`, and the attribute of the answer."""


class DAGMan:
    """The DAG whose job has the cluster `dag_id`."""

    ads: ClassVar[type[ClassAd]] = ClassAd

    def __init__(self, dag_id: int) -> None:
        if not isinstance(dag_id, int):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError("dag_id must be an integer")
        self._dag_id = dag_id

    @property
    def dag_id(self) -> int:
        """The cluster of the DAG job."""
        return self._dag_id

    def halt(self, reason: str | None = None, pause: bool | None = None) -> tuple[bool, str]:
        """
        Submit nothing new; jobs and POST scripts that run go on.  Whether it is so, and a sentence.

        `pause` would stop everything without an end of the DAG: `condor_hold` of the DAG job does that.
        """
        if pause:
            return (
                False,
                f"a DAG is not paused here: condor_hold {self._dag_id} has it wait, condor_release go on",
            )
        try:
            ask(pool_here(), lambda client: client.workflows.halt(self._dag_id, reason or ""))
        except HTCondorException as error:
            return False, str(error)
        return True, f"Halted DAG {self._dag_id}"

    def resume(self) -> tuple[bool, str]:
        """Let a halted DAG go on.  Whether it is so, and a sentence."""
        try:
            ask(pool_here(), lambda client: client.workflows.resume(self._dag_id))
        except HTCondorException as error:
            return False, str(error)
        return True, f"Resumed DAG {self._dag_id}"

    def throttle(self, **kwargs: Any) -> ClassAd | str:
        """
        Change limits: `max_nodes`, `max_idle`, `max_pre`, `max_hold`, `max_post`.  All of them as they are then, or a sentence.

        `max_submits` has no meaning here: there are no intervals in which nodes are submitted.
        """
        limits = {
            field: int(kwargs[name]) for name, (field, _) in _LIMITS.items() if kwargs.get(name) is not None
        }
        if not limits:
            return "No valid throttle specified"
        if negative := [name for name in limits if limits[name] < 0]:
            return f"{negative[0]} must not be negative"
        try:
            options = ask(pool_here(), lambda client: client.workflows.throttle(self._dag_id, **limits))
        except HTCondorException as error:
            return str(error)
        return self._said(options)

    def _said(self, options: WorkflowOptions) -> ClassAd:
        return self.ads({attribute: getattr(options, field) for field, attribute in _LIMITS.values()})
