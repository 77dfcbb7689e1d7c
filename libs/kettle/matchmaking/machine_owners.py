"""
Machines that take the jobs of one person only, or of one accounting group: iam says so when they join, whatever they say of themselves.
"""

from typing import Final

from kettle.classad.printing import quoted_string
from kettle_wire.ads import Ad, Expr
from kettle_wire.machine_owners import owner_of

_REQUIREMENTS: Final = "Requirements"
_OWN: Final = "KettleMachineRequirements"
"""What the machine itself requires: an attribute, so that no text of it ends the condition that stands before it."""


class MachineOwners:
    """By the token of a machine's name."""

    def __init__(self) -> None:
        self._owners: dict[str, bytes] = {}

    def change(self, machine: str, owner: bytes | None) -> bool:
        """A machine has an owner now, or (None) has none; whether that is new."""
        before = self._owners.pop(machine, None)
        if owner is not None:
            self._owners[machine] = owner
        return before != self._owners.get(machine)

    def bound(self, slot: str, ad: Ad) -> Ad:
        """The ad of a slot, by its key, with what iam says about the jobs that it takes."""
        owner = self._owners.get(slot.partition(".")[0])
        if owner is None:
            return ad
        hidden = {_REQUIREMENTS.lower(), _OWN.lower()}
        own = next((value for name, value in ad.items() if name.lower() == _REQUIREMENTS.lower()), True)
        rest = {name: value for name, value in ad.items() if name.lower() not in hidden}
        person, group = owner_of(owner)
        whose = of_group(group)
        if person:
            whose = f"TARGET.Owner =?= {quoted_string(person)}"
        condition = f"({whose}) && {_OWN}"
        return rest | {_OWN: own, _REQUIREMENTS: Expr(condition)}


def of_group(group: str) -> str:
    """That a job is of an accounting group or of one below it, however its schedd spells that."""
    below = quoted_string(f"{group.lower()}.")
    name = 'toLower(TARGET.AcctGroup ?: "")'
    return f"{name} == {quoted_string(group.lower())} || substr({name}, 0, {len(group) + 1}) == {below}"
