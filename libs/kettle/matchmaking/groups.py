"""
Accounting groups: a tree by the dots in their names, and what an administrator says of each. Pure.

Parents are named before they have children, so a tree can have no cycle; what cannot be a tree is refused with a sentence.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Final, Literal

import msgspec

ROOT: Final = "<none>"
"""The group of all who are in no other: the whole pool is its quota, and it keeps what its children leave."""
_NAME: Final = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")
_LONGEST: Final = 128
_EXACTLY: Final = 1e-9

Weight = Annotated[float, msgspec.Meta(ge=0, le=1e15)]
GroupField = Literal["quota", "quota_dynamic"]


class GroupRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The configuration of a group; without any, it has no quota of its own."""

    quota: Weight | None = None
    """In slot weights, cores if nothing else is set (GROUP_QUOTA_<group>)."""
    quota_dynamic: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    """As a part of what its parent has beyond static quotas (GROUP_QUOTA_DYNAMIC_<group>)."""
    accept_surplus: bool | None = None
    """It may use what others leave (GROUP_ACCEPT_SURPLUS_<group>); None: as is usual in the pool."""
    autoregroup: bool | None = None
    """Its submitters are served once more among those without a group (GROUP_AUTOREGROUP_<group>)."""
    prio_factor: Annotated[float, msgspec.Meta(ge=1, le=1e18)] | None = None
    """Priority factor of its submitters (GROUP_PRIO_FACTOR_<group>); None: the usual one."""


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """A group in its place in the tree; parent and children are their numbers in it."""

    name: str
    parent: int
    children: tuple[int, ...] = ()
    quota: float | None = None
    quota_dynamic: float | None = None
    accept_surplus: bool = False
    autoregroup: bool = False
    prio_factor: float | None = None


class GroupError(ValueError):
    """
    The configuration of groups is not a valid tree; `group` is the one to check, the message says what is wrong.
    """

    def __init__(self, group: str, message: str) -> None:
        super().__init__(message)
        self.group = group


class Tree:
    """All groups, the root first, parents before their children."""

    def __init__(
        self,
        rules: Mapping[str, GroupRule],
        *,
        accept_surplus: bool = False,
        autoregroup: bool = False,
        oversubscription: bool = False,
    ) -> None:
        """
        `accept_surplus` and `autoregroup` are for groups that do not say; `oversubscription` lets children's quotas be
        more than their parent's (NEGOTIATOR_ALLOW_QUOTA_OVERSUBSCRIPTION).

        Raises GroupError.
        """
        self.oversubscription: Final = oversubscription
        self._numbers: dict[str, int] = {}
        names = sorted(rules, key=lambda name: name.count("."))
        self._depth: Final = names[-1].count(".") + 1 if names else 0
        parents = [0, *(self._enter(name) for name in names)]
        children: list[list[int]] = [[] for _ in parents]
        for number, parent in enumerate(parents[1:], 1):
            children[parent].append(number)
        groups = [Group(name=ROOT, parent=0, children=tuple(children[0]), accept_surplus=True)]
        for number, name in enumerate(names, 1):
            rule = rules[name]
            groups.append(
                Group(
                    name=name,
                    parent=parents[number],
                    children=tuple(children[number]),
                    quota=rule.quota,
                    quota_dynamic=rule.quota_dynamic,
                    accept_surplus=accept_surplus if rule.accept_surplus is None else rule.accept_surplus,
                    autoregroup=autoregroup if rule.autoregroup is None else rule.autoregroup,
                    prio_factor=rule.prio_factor,
                )
            )
        self.groups: Final = tuple(groups)
        for group in groups:
            self._check(group)

    def __len__(self) -> int:
        return len(self.groups)

    def _enter(self, name: str) -> int:
        """Number a group; its parent's number."""
        if not _NAME.fullmatch(name) or len(name) > _LONGEST:
            raise GroupError(
                name, f"'{name}' is no name of a group: letters, digits, - and _, and a dot after each parent"
            )
        if name.lower() in self._numbers:
            raise GroupError(name, f"the group {name} is there twice: upper and lower case are the same")
        above = name.rpartition(".")[0]
        if above and above.lower() not in self._numbers:
            raise GroupError(name, f"the group {name} has no parent: there is no group {above}")
        self._numbers[name.lower()] = len(self._numbers) + 1
        return self._numbers[above.lower()] if above else 0

    def _check(self, group: Group) -> None:
        if group.quota is not None and group.quota_dynamic is not None:
            raise GroupError(group.name, f"the group {group.name} has a static and a dynamic quota: say one")
        if self.oversubscription:
            return
        children = [self.groups[number] for number in group.children]
        dynamic = sum(child.quota_dynamic or 0.0 for child in children)
        if dynamic > 1 + _EXACTLY:
            raise GroupError(
                children[-1].name,
                f"the dynamic quotas below {group.name} are {dynamic:g} together, more than 1 "
                f"({', '.join(child.name for child in children if child.quota_dynamic)})",
            )
        static = sum(child.quota or 0.0 for child in children)
        if group.quota is not None and static > group.quota * (1 + _EXACTLY):
            raise GroupError(
                children[-1].name,
                f"the quotas below {group.name} are {static:g} together, more than its own {group.quota:g} "
                f"({', '.join(child.name for child in children if child.quota)})",
            )

    def number_of(self, submitter: str) -> int:
        """
        The group of a submitter `group.sub.user`: the longest configured beginning of the name; else the root.
        """
        # Names are others' to choose: one with very many dots costs no more than the tree is deep.
        parts = submitter.lower().split(".", self._depth)[:-1]
        for end in range(len(parts), 0, -1):
            if (number := self._numbers.get(".".join(parts[:end]))) is not None:
                return number
        return 0

    def find(self, name: str) -> Group | None:
        """The group of this name."""
        number = self._numbers.get(name.lower())
        return self.groups[number] if number is not None else None

    def upward(self, number: int) -> Iterator[int]:
        """A group and those above it, the root last."""
        while number:
            yield number
            number = self.groups[number].parent
        yield 0


NO_GROUPS: Final = Tree({})
