"""Who may do what with a job in the queue."""

from collections.abc import Collection


def may_manage(person: str, owner: str, super_users: Collection[str]) -> bool:
    """
    Whether a person may hold, release, remove, edit and look into a job of `owner`, and move its files.

    The owner may, and so may the super users of the queue (HTCondor's QUEUE_SUPER_USERS).
    """
    return person == owner or person in super_users
