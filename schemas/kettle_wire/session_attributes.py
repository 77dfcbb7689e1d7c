"""The attributes of jobs of interactive sessions, and of jobs that publish services."""

from typing import Final

ID: Final = "KettleSessionId"
"""The attribute of a job that says of which session it is; no submission and no running job sets it."""
NUMBER: Final = "KettleSessionMember"
"""The attribute of a job that says which member of its session it is; numbers are not used twice."""
BATCH: Final = "KettleSessionBatch"
"""The attribute of a job that says with which order of its session it was submitted."""

FILES: Final = "KettleSessionFiles"
"""The attribute of a job that has the files of its session beside its tokens."""
SERVICES: Final = "Services"
"""The attribute of a job that says which of its ports people reach through the gateway."""
SHARED_WITH: Final = "ServicesSharedWith"
"""The attribute of a job that says who reaches them besides its owner."""
TASK_QUEUE: Final = "KettleTaskQueue"
"""The attribute of a job that says for which task queue it works. It gives no right: the queue has to be its owner's."""
MARKS: Final = frozenset(map(str.lower, (ID, NUMBER, BATCH, FILES)))
"""The names of the four that sessions have, in lower case."""
