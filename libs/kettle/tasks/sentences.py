"""
A sentence for people about each step of a job of several tasks: for its log, and for what shows events.  Pure.
"""

from typing import Final, assert_never

from kettle.terminal.quantities import counted, duration, size
from kettle_wire.tasks import Outcome, Step

_FETCHED: Final[dict[Outcome, str]] = {
    "begun": "is being fetched",
    "done": "fetched",
    "cached": "was there",
    "failed": "cannot be fetched",
    "ended": "was not fetched to its end",
}
_SENT: Final[dict[Outcome, str]] = {
    "begun": "is being sent",
    "done": "sent",
    "cached": "was sent before",
    "failed": "cannot be sent",
    "ended": "was not sent to its end",
}


def step_sentence(step: Step) -> str:
    """What the step says."""
    match step.kind:
        case "fetch":
            return f"{step.name} {_FETCHED[step.outcome]}{_how(step)}"
        case "pull":
            return f"image {step.name} {_FETCHED[step.outcome]}{_how(step)}"
        case "send":
            return f"{step.name} {_SENT[step.outcome]}{_how(step)}"
        case "task" | "sidecar":
            return f"{_who(step)} {_went(step)}"
        case _:
            assert_never(step.kind)


def _who(step: Step) -> str:
    who = f"{'task' if step.kind == 'task' else 'sidecar'} {step.task}"
    return f"{who}, {counted(step.retry, 'retry', 'retries')}," if step.retry else who


def _went(step: Step) -> str:
    if step.outcome == "begun":
        return "begins"
    how = "ended"
    if step.code is not None:
        how = f"exited with code {step.code}"
    elif step.signal is not None:
        how = f"was ended by signal {step.signal}"
    elif step.outcome == "failed":
        how = "failed"
    return f"{how}{_how(step)}"


def _how(step: Step) -> str:
    took = f" after {duration(step.ended - step.began)}" if step.ended > step.began > 0 else ""
    much = f", {size(step.bytes / 1024)}" if step.bytes else ""
    return f"{took}{much}{f': {step.reason}' if step.reason else ''}"
