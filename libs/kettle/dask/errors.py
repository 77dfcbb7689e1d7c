"""
What can go wrong with a cluster; each message is a sentence for the person in front of the notebook.

    ClusterError
    ├── SessionEndedError      the session is over; the message says why
    ├── VersionMismatchError   this Python and the cluster's do not understand each other
    ├── NotReadyError          there is no scheduler yet; `cluster.why()` says for what it waits
    └── NotStoppedError        the cluster was let go here, but its jobs go on

That the pool itself does not answer is `kettle.client.PoolUnreachableError`; the cluster object stays, and goes on when it does.
"""


class ClusterError(Exception):
    """Base of what a cluster raises."""


class SessionEndedError(ClusterError):
    """The session is over."""


class VersionMismatchError(ClusterError):
    """Functions and results would not arrive as they were sent."""


class NotReadyError(ClusterError):
    """There is no scheduler to speak with."""


class NotStoppedError(ClusterError):
    """The jobs go on until somebody stops them, or their session ends by itself."""
