"""Who may do what with a job in the queue."""

from collections.abc import Collection

from kettle_wire.identity import Identity


def may_manage(person: str, owner: str, super_users: Collection[str]) -> bool:
    """
    Whether a person may hold, release, remove, edit and look into a job of `owner`, and move its files.

    The owner may, and so may the super users of the queue (HTCondor's QUEUE_SUPER_USERS).
    """
    return person == owner or person in super_users


def refusal(person: str, act: str, owner: str, *, super_users: bool = True) -> str:
    """
    The sentence for who may not do something with what is somebody else's; `super_users`: whether those of the queue may.
    """
    others = ", and who is in queue_super_users of [schedd]" if super_users else " alone"
    return f"{person} may not {act}, which is of {owner}: {owner} may{others}"


def sees_all(caller: Identity, super_users: Collection[str]) -> bool:
    """Whether all of everybody's jobs is shown to a caller: to services, and to super users of the queue."""
    return caller.kind != "user" or caller.name in super_users
