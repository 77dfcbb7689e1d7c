"""
What a job may not say to the command that submits it (`BatchExtraSubmitArgs`): who it is, who is charged and where it waits is said by its
route, how its script comes and where its output goes by us, and what the site's own program has said stays.

A job that comes by a route says with words of its own nothing either for which there is an attribute: its route was chosen by that.
"""

import re
import shlex
from collections.abc import Sequence
from itertools import takewhile
from typing import Final

import msgspec


class OwnOptions(msgspec.Struct, frozen=True):
    """The options of one system's command that are said by nobody else."""

    prefix: str
    """Of directives in a script."""

    identity: frozenset[str]
    """The name, the account and the queue, which the command line says as well: what stands there counts for more than a directive."""
    others: frozenset[str]
    abbreviated: bool = False
    """Whether long options may be cut short, as with getopt."""
    letters: str = ""
    """One-letter options without a value, which may stand before others in the same word; empty: each option is a word of its own."""
    asked: tuple[frozenset[str], ...] = ()
    """What routes decide by: how much a job gets, for how long, and in whose share. Those that say the same thing are together."""

    def said_by(self, directives: Sequence[str]) -> frozenset[str]:
        """The options that directives of the site have, with all others that say the same thing."""
        names: set[str] = set()
        for line in directives:
            try:
                words = shlex.split(line.removeprefix(self.prefix))
            except ValueError:
                words = line.removeprefix(self.prefix).split()
            names |= {word.partition("=")[0] for word in words if word.startswith("-")}
        return frozenset(names).union(*(group for group in self.asked if group & names))

    def said_in(self, script: str) -> list[str]:
        """
        The words of those directives of a script, the site's among them, that say who the job is, and where.
        """
        found: list[str] = []
        for line in takewhile(lambda line: line.startswith("#"), script.splitlines()):
            first = line.removeprefix(self.prefix).split(None, 1)[:1] if line.startswith(self.prefix) else []
            if not first or first[0].partition("=")[0].strip("'\"") not in self.identity:
                continue
            try:
                words = shlex.split(line.removeprefix(self.prefix))
            except ValueError:
                continue  # of the site's hook, in a form of its own
            if words and words[0].partition("=")[0] in self.identity:
                found += words
        return found

    def refused(
        self, arguments: Sequence[str], *, strict: bool = False, said: frozenset[str] = frozenset()
    ) -> str:
        """
        The first argument that is not the job's to say; empty: there is none.

        `strict`: nothing for which there is an attribute is; `said`: options that the site has said.
        """
        taken = said.union(*self.asked) if strict else said
        before = ""
        for word in arguments:
            if not word.startswith("-"):
                if not before.startswith("-") or "=" in before:
                    return word  # a script of its own, in the place of ours
            elif self._is_own(word, taken):
                return word
            before = word
        return ""

    def _is_own(self, word: str, taken: frozenset[str]) -> bool:
        own, name = self.identity | self.others | taken, word.partition("=")[0]
        if name in own or name in {"-", "--"}:
            return True
        if name.startswith("--"):
            return self.abbreviated and any(each.startswith(name) for each in own)
        short = [
            each
            for each in (own if self.letters else self.identity | taken)
            if re.fullmatch(r"-[A-Za-z]", each)
        ]
        rest = word[1:].lstrip(self.letters)
        return bool(rest) and f"-{rest[0]}" in short


SLURM: Final = OwnOptions(
    prefix="#SBATCH",
    identity=frozenset({"--job-name", "-J", "--comment", "--account", "-A", "--partition", "-p"}),
    others=frozenset({
        "--chdir", "-D", "--clusters", "-M", "--cluster", "--error", "-e", "--export", "--export-file", "--get-user-env",
        "--gid", "--input", "-i", "--open-mode", "--output", "-o", "--parsable", "--requeue", "--no-requeue", "--test-only", "--uid",
        "--wait", "-W", "--wrap", "--help", "-h", "--version", "-V", "--usage", "--wckey",
    }),
    abbreviated=True,
    letters="HkOQsvZ",
    asked=(
        frozenset({"--time", "-t", "--time-min", "--deadline"}),
        frozenset({"--mem", "--mem-per-cpu", "--mem-per-gpu"}),
        frozenset({
            "--cpus-per-task", "-c", "--ntasks", "-n", "--ntasks-per-node", "--ntasks-per-core", "--ntasks-per-socket", "--ntasks-per-gpu",
            "--cpus-per-gpu", "--sockets-per-node", "--cores-per-socket", "--threads-per-core", "--extra-node-info", "-B",
            "--overcommit", "-O", "--core-spec", "-S", "--thread-spec", "--mincpus", "--mincores", "--minsockets", "--minthreads",
        }),
        frozenset({
            "--nodes", "-N", "--nodelist", "-w", "--nodefile", "-F", "--exclusive", "--oversubscribe", "-s", "--share", "--use-min-nodes",
        }),
        frozenset({
            "--gres", "--gpus", "-G", "--gpus-per-node", "--gpus-per-task", "--gpus-per-socket", "--tres-per-task", "--gpu-bind", "--gpu-freq",
        }),
        frozenset({"--array", "-a"}),
        frozenset({"--qos", "-q"}),
        frozenset({"--reservation", "--priority"}),
    ),
)  # fmt: skip
LSF: Final = OwnOptions(
    prefix="#BSUB",
    identity=frozenset({"-J", "-q", "-P"}),
    others=frozenset({
        "-G", "-I", "-Ip", "-IS", "-ISp", "-ISs", "-Is", "-IX", "-K", "-Lp", "-Zs", "-cwd", "-e", "-env", "-eo", "-i", "-is", "-json", "-jsdl",
        "-jsdl_strict", "-jsm", "-h", "-o", "-oo", "-outdir", "-pack", "-rn", "-r", "-V", "-yaml",
    }),
    asked=(
        frozenset({"-W"}), frozenset({"-M", "-v", "-hl"}), frozenset({"-n", "-nnodes", "-hostfile"}), frozenset({"-R"}), frozenset({"-gpu"}),
        frozenset({"-x"}), frozenset({"-m"}), frozenset({"-U", "-sla", "-app"}),
    ),
)  # fmt: skip
PBS: Final = OwnOptions(
    prefix="#PBS",
    identity=frozenset({"-N", "-q", "-A"}),
    others=frozenset({
        "-C", "-I", "-P", "-S", "-V", "-X", "-d", "-e", "-f", "-j", "-k", "-o", "-r", "-u", "-v", "-w", "-z", "--version",
    }),
    letters="hmn",
    asked=(frozenset({"-l", "-L", "-n"}), frozenset({"-J", "-t"}), frozenset({"-W"}), frozenset({"-p"})),
)  # fmt: skip
GRID_ENGINE: Final = OwnOptions(
    prefix="#$",
    identity=frozenset({"-N", "-q", "-P"}),
    others=frozenset({
        "-@", "-A", "-C", "-S", "-V", "-adds", "-b", "-clear", "-clearp", "-clears", "-cwd", "-e", "-help", "-i", "-inherit", "-j", "-jc",
        "-jsv", "-masterq", "-mods", "-now", "-o", "-r", "-shell", "-sync", "-terse", "-v", "-verify", "-wd",
    }),
    asked=(
        frozenset({"-l", "-hard", "-soft", "-masterl", "-petask"}), frozenset({"-pe"}), frozenset({"-t", "-tc"}), frozenset({"-ar"}),
    ),
)  # fmt: skip
