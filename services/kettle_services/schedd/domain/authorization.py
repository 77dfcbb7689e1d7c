"""Who may do what with a job in the queue."""

from collections.abc import Collection

from kettle_wire.identity import Identity


def may_manage(person: str, owner: str, super_users: Collection[str]) -> bool:
    """
    Whether a person may hold, release, remove, edit and look into a job of `owner`, and move its files.

    The owner may, and so may the super users of the queue (HTCondor's QUEUE_SUPER_USERS).
    """
    return person == owner or person in super_users


def sees_all(caller: Identity, super_users: Collection[str]) -> bool:
    """Whether all of everybody's jobs is shown to a caller: to services, and to super users of the queue."""
    return caller.kind != "user" or caller.name in super_users
