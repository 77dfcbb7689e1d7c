"""The tasks of a job: a file that is read when the job is submitted."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

from kettle.submit.expressions import unquoted
from kettle.submit.lookup import Lookup, is_settled
from kettle_wire.ads.types import Ad

if TYPE_CHECKING:
    from kettle_wire.tasks import TaskList

COMMAND: Final = "tasks"


def tasks(lookup: Lookup) -> Ad:
    """What the file says, as it goes into the ad."""
    found = _read(lookup)
    return {} if found is None else {"KettleTasks": found[0]}


def has_tasks(lookup: Lookup) -> bool:
    """Whether the job has several tasks, and no program of its own."""
    return lookup.get(COMMAND) is not None


def shown_program(lookup: Lookup) -> str:
    """What lists of jobs show of one: its first task.  Nothing runs it."""
    found = _read(lookup)
    assert found is not None
    first = found[1].tasks[0]
    return first.cmd[0] if first.cmd else first.image


def requirements(lookup: Lookup) -> list[str]:
    """Clauses for machines that run such images."""
    if (found := _read(lookup)) is None:
        return []
    from kettle.tasks.reading import RUNS_IMAGES, image_form  # as below

    forms = {form for task in found[1].tasks if (form := image_form(task))}
    return (["TARGET.HasContainer"] if forms else []) + [
        f"TARGET.{RUNS_IMAGES[form]}" for form in sorted(forms)
    ]


def _read(lookup: Lookup) -> "tuple[str, TaskList] | None":
    given = lookup.get(COMMAND)
    if given is None:
        return None
    from kettle.tasks.reading import TasksError, read_tasks  # few jobs have tasks, and a command begins often

    path = Path(lookup.iwd() / unquoted(given.text))
    if not is_settled(path):
        given.refuse(f"the file of the tasks must be known now, and {path} is not")
    try:
        text = path.read_text(encoding="utf-8")
        return text, read_tasks(text)
    except OSError as error:
        given.refuse(f"the tasks in {path} cannot be read: {error.strerror}")
    except (TasksError, UnicodeError) as error:
        given.refuse(f"the tasks in {path} cannot be run: {error}")
