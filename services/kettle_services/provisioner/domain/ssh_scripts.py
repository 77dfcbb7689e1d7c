"""
What is run on a host: scripts for `sh -s`, and what they print.

A machine is a directory named by its lease, below one for the deployment; making the directory is the lock.  In it are `pid` (the
number of the process, when it began, and during which boot of the host: a number alone may be somebody else's by now),
`console`, and `ending` since the process was asked to end.  A directory that has no `pid` soon after it was made is that of a machine
whose beginning was interrupted: there is none.
"""

import shlex
from collections.abc import Iterator
from typing import Final

from kettle_wire.leases import MachineFound, MachineState

FULL: Final = "full"
MADE: Final = "made"
_STARTED_S: Final = 120
"""Within so many seconds after its directory was made the process of a machine has begun, or never does."""

_COMMON: Final = """
born() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | awk '$1 != "Z" { print $20 }'; }
boot=$(cat /proc/sys/kernel/random/boot_id)
alive() {
    read -r pid began during <"$1/pid" 2>/dev/null || return 1
    [ -n "$began" ] && [ "$during" = "$boot" ] && [ "$(born "$pid")" = "$began" ]
}
state() {
    if alive "$1"; then echo running
    elif [ -d "$1" ] && ! [ -e "$1/pid" ] && [ $(($(date +%s) - $(stat -c %Y "$1"))) -lt "$started" ]; then echo pending
    else echo gone
    fi
}
"""
_CREATE: Final = """
umask 077
mkdir -p "$base" || exit 73
if [ "$(state "$base/$lease")" = gone ]; then rm -rf "${base:?}/$lease"; fi
mkdir "$base/$lease" 2>/dev/null || { [ "$(state "$base/$lease")" = running ] && echo made; exit 0; }
busy=0
for each in "$base"/*/; do [ "$(state "$each")" = gone ] || busy=$((busy + 1)); done
if [ "$busy" -gt "$most" ]; then rmdir "$base/$lease"; echo full; exit 0; fi
machine=$base/$lease
export machine
"""
_RECORD: Final = """
pid=$!
echo "$pid $(born "$pid") $boot" >"$machine/pid.new" && mv "$machine/pid.new" "$machine/pid" && echo made
"""
_LIST: Final = """
[ -d "$base" ] || exit 0
for each in "$base"/*/; do
    [ -d "$each" ] || continue
    echo "$(basename "$each") $(state "$each") $(stat -c %Y "$each")"
done
"""
_LOOK: Final = """
echo "$lease $(state "$base/$lease") $(stat -c %Y "$base/$lease" 2>/dev/null || echo 0)"
"""
_DELETE: Final = """
machine=$base/$lease
if alive "$machine"; then
    now=$(date +%s)
    asked=$(cat "$machine/ending" 2>/dev/null || { echo "$now" >"$machine/ending"; echo "$now"; })
    if [ $((now - asked)) -ge "$grace" ]; then kill -KILL "-$pid"; else kill -TERM "$pid"; fi
else
    rm -rf "$machine"
fi
"""
_EXAMINE: Final = """
for each in setsid timeout awk "$program"; do command -v "$each" >/dev/null || echo "missing $each"; done
echo "cpus $(nproc)"
awk '/^MemTotal/ { print "memory " int($2 / 1024) }' /proc/meminfo
"""
_END: Final = "END-OF-MACHINE"


def _script(body: str, **variables: str) -> str:
    return (
        "".join(f"{name}={shlex.quote(value)}\n" for name, value in variables.items())
        + f"started={_STARTED_S}\n{_COMMON}{body}"
    )


def create(base: str, lease: str, script: str, *, life: int, most: int) -> str:
    """
    Make a machine, unless `most` are there already; it is ended after `life` seconds, and killed a minute later.

    `script` reads `$machine`, its directory.
    """
    started = f"setsid timeout -k 60 {life} sh -s >\"$machine/console\" 2>&1 <<'{_END}' &\n{script}{_END}\n"
    return _script(_CREATE + started + _RECORD, base=base, lease=lease, most=str(most))


def list_machines(base: str) -> str:
    """Print a line for each."""
    return _script(_LIST, base=base)


def look(base: str, lease: str) -> str:
    """Print a line for one."""
    return _script(_LOOK, base=base, lease=lease)


def delete(base: str, lease: str, grace: int) -> str:
    """
    Ask a machine to end; who is asked again after `grace` seconds is killed, with its process group.  The directory of one that has
    ended is removed.
    """
    return _script(_DELETE, base=base, lease=lease, grace=str(grace))


def console(base: str, lease: str, size: int) -> str:
    """Print the end of what it wrote."""
    return f"tail -c {size} {shlex.quote(f'{base}/{lease}/console')} 2>/dev/null\n"


def examine(program: str) -> str:
    """Print what the host has."""
    return _script(_EXAMINE, program=program)


def machines(host: str, deployment: str, output: str) -> Iterator[MachineFound]:
    """What the lines of `list_machines` and `look` say."""
    states = {each.value: each for each in (MachineState.PENDING, MachineState.RUNNING, MachineState.GONE)}
    for line in output.splitlines():
        lease, _, rest = line.partition(" ")
        state, _, created = rest.partition(" ")
        if state in states:
            yield MachineFound(
                handle=handle(host, lease),
                state=states[state],
                lease=lease,
                deployment=deployment,
                created=float(created) if created.isdecimal() else 0.0,
            )


def shortcomings(output: str, *, cpus: int, memory: int) -> Iterator[str]:
    """What a host has not that an offer says, as the end of a sentence."""
    for line in output.splitlines():
        word, _, value = line.partition(" ")
        match word:
            case "missing":
                yield f"has no command {value}"
            case "cpus" if value.isdecimal() and int(value) < cpus:
                yield f"has {value} cores, and the offer says {cpus}"
            case "memory" if value.isdecimal() and int(value) < memory:
                yield f"has {value} MB of memory, and the offer says {memory}"
            case _:
                pass


def handle(host: str, lease: str) -> str:
    """The name of a machine."""
    return f"{host}/{lease}"
