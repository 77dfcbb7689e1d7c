"""
Jobs that testify: what really ran, written down outside of anything that the pool manages.

Each run holds a lock for as long as it lives and says so if it finds the lock taken; it notes its beginning and its end.
A disk that is full delays it, it does not change what it does.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

FACTOR: Final = 7

_SCRIPT: Final = """\
#!/bin/sh
# witness DIRECTORY NAME SECONDS WANTS: testify in DIRECTORY, live for SECONDS, leave "NAME factor" in result.NAME; WANTS is "token"
# or "nothing"
umask 0
if [ "${_CONDOR_PROCNO:-0}" -gt 0 ]; then  # not the first node of its job: it lives until that has ended
    exec 9>>"$1/locks/$2.node$_CONDOR_PROCNO"
    flock -n 9 || echo "$2.node$_CONDOR_PROCNO" >>"$1/overlaps"
    echo "$2" >>"$1/others"
    exec sleep 3600
fi
exec 9>>"$1/locks/$2"
flock -n 9 || echo "$2" >>"$1/overlaps"
echo "$2" >>"$1/runs"
if [ "$4" = token ]; then
    if [ -s "$BEARER_TOKEN_FILE" ]; then echo "$2" >>"$1/with_token"; else echo "$2" >>"$1/without_token"; fi
fi
sleep "$3"
read -r factor <factor || exit 3
until { echo "$2 $factor" >"result.$2"; } 2>/dev/null; do sleep 0.1; done
until { echo "this is $2"; } 2>/dev/null; do sleep 0.1; done
echo "$2" >>"$1/done"
"""


class Evidence(msgspec.Struct, frozen=True):
    """A directory in which witnesses write, and one with their input and output."""

    directory: Path
    work: Path

    @classmethod
    def prepare(cls, directory: Path, work: Path) -> "Evidence":
        """Make the directories; jobs of any account may write in the first."""
        for path in (directory, directory / "locks"):
            path.mkdir(parents=True)
            path.chmod(0o1777)
        work.mkdir(parents=True)
        script = work / "witness.sh"
        script.write_text(_SCRIPT)
        script.chmod(0o755)
        (work / "factor").write_text(f"{FACTOR}\n")
        return cls(directory, work)

    def description(
        self, batch: str, seconds: Sequence[float], *, nodes: int = 1, token: bool = False
    ) -> str:
        """
        The submit description of one witness for each entry, which lives that long; `nodes`: slots of each, in one of which it is;
        `token`: it wants one of the pool's.
        """
        parallel = f"universe = parallel\nmachine_count = {nodes}\n" if nodes > 1 else ""
        wants = "use_oauth_services = kettle\n" if token else ""
        return f"""\
{parallel}{wants}executable = witness.sh
arguments = {self.directory} {batch}.$(Process) $(seconds) {"token" if token else "nothing"}
transfer_input_files = factor
transfer_output_files = result.{batch}.$(Process)
output = out.{batch}.$(Process)
request_cpus = 1
request_memory = 16
request_disk = 1024
+ChaosBatch = "{batch}"
queue seconds in ({" ".join(f"{each:.2f}" for each in seconds)})
"""

    def runs(self) -> Counter[str]:
        """How often each job has begun, by name."""
        return self._noted("runs")

    def others(self) -> Counter[str]:
        """How often other nodes than the first of each job have begun."""
        return self._noted("others")

    def ends(self) -> Counter[str]:
        """How often each job has come to its end."""
        return self._noted("done")

    def with_token(self) -> Counter[str]:
        """How often each job that wants a token has had one."""
        return self._noted("with_token")

    def without_token(self) -> Counter[str]:
        """How often each job that wants a token has had none."""
        return self._noted("without_token")

    def overlaps(self) -> Counter[str]:
        """The jobs of which a second attempt began while the first one lived."""
        return self._noted("overlaps")

    def wrong_output(self, name: str) -> str:
        """What is wrong with the output files of a job that completed; empty if nothing is."""
        for file, expected in (
            (f"result.{name}", f"{name} {FACTOR}\n"),
            (f"out.{name}", f"this is {name}\n"),
        ):
            path = self.work / file
            found = path.read_text(errors="replace") if path.exists() else None
            if found != expected:
                return f"{file} is {'missing' if found is None else repr(found[:80])}"
        return ""

    def _noted(self, name: str) -> Counter[str]:
        path = self.directory / name
        return Counter(path.read_text().split() if path.exists() else [])
