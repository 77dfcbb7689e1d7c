"""The graph of a workflow's jobs: which wait for which; cycles, levels, and the longest path."""

from collections.abc import Iterable, Iterator, Sequence

import msgspec


class JobGraph(msgspec.Struct, frozen=True):
    """
    Jobs by their index; a job of several instances is one vertex, and all of them wait for all of a parent's.
    """

    children: tuple[tuple[int, ...], ...]
    """Of each job, without repetition, in the order in which they were named."""

    @classmethod
    def of(cls, jobs: int, edges: Iterable[tuple[int, int]]) -> "JobGraph":
        """The graph of so many jobs in which each second of a pair waits for the first."""
        children: list[dict[int, None]] = [{} for _ in range(jobs)]
        for parent, child in edges:
            children[parent][child] = None
        return cls(tuple(map(tuple, children)))

    def parents(self) -> tuple[tuple[int, ...], ...]:
        """What each job waits for."""
        found: list[list[int]] = [[] for _ in self.children]
        for parent, children in enumerate(self.children):
            for child in children:
                found[child].append(parent)
        return tuple(map(tuple, found))

    def ordered(self) -> list[int]:
        """Jobs after what they wait for; those in a cycle, and behind one, are missing."""
        waiting = [len(parents) for parents in self.parents()]
        order = [job for job, parents in enumerate(waiting) if not parents]
        for job in order:
            for child in self.children[job]:
                waiting[child] -= 1
                if not waiting[child]:
                    order.append(child)
        return order

    def cycles(self) -> Iterator[list[int]]:
        """A cycle of jobs for each group of jobs that wait for each other; no job is in two of them."""
        left = set(range(len(self.children))) - set(self.ordered())
        parents = self.parents()
        while left:
            job, seen = min(left), dict[int, int]()
            while job not in seen:  # every job that is left waits for another that is left
                seen[job] = len(seen)
                job = next(parent for parent in parents[job] if parent in left)
            cycle = [each for each, place in seen.items() if place >= seen[job]][::-1]
            first = cycle.index(min(cycle))
            yield cycle[first:] + cycle[:first]
            left = self._without(left, set(cycle))

    def levels(self) -> list[int]:
        """How many jobs stand before each on the longest way to it; of a graph without cycles."""
        found = [0] * len(self.children)
        for job in self.ordered():
            for child in self.children[job]:
                found[child] = max(found[child], found[job] + 1)
        return found

    def critical_path(self, seconds: Sequence[float]) -> list[int]:
        """The jobs, one behind the other, that take longest together; of a graph without cycles."""
        ends, before = list(seconds), dict[int, int]()
        for job in self.ordered():
            for child in self.children[job]:
                if child not in before or ends[job] + seconds[child] > ends[child]:
                    ends[child], before[child] = ends[job] + seconds[child], job
        if not ends:
            return []
        path = [max(range(len(ends)), key=ends.__getitem__)]
        while path[-1] in before:
            path.append(before[path[-1]])
        return path[::-1]

    def _without(self, left: set[int], gone: set[int]) -> set[int]:
        """What still waits in a cycle, or for one, when some jobs are taken away."""
        kept = sorted(left - gone)
        place = {job: number for number, job in enumerate(kept)}
        edges = ((place[job], place[child]) for job in kept for child in self.children[job] if child in place)
        ordered = {kept[number] for number in JobGraph.of(len(kept), edges).ordered()}
        return set(kept) - ordered
