"""condor_ce_run: a command line through a compute entrypoint, with its output here."""

from typing import Final

from kettle_services.condor.arguments.grammar import Option, understood_before
from kettle_services.condor.commands import run as condor_run
from kettle_services.condor.errors import WordsError

OPTIONS: Final = {
    "append": Option(takes=1, also=("a",)),
    "debug": Option(also=("d",)),
    "local": Option(also=("l",)),
    "remote": Option(takes=1, also=("r",)),
}
HELP: Final = {
    "condor_ce_run": """\
usage: condor_ce_run [options] [HOST] COMMAND

Run a command line as a job of a compute entrypoint and wait for it: its output, its errors and its exit status come out here.

  -r HOST                the entrypoint of another host; so does HOST as the first word, if it has a dot
  -l                     as a job of the local universe: on the machine of the access point, by no route
  -a LINE                one more line of the submit description; may be repeated
  -d                     changes nothing here
""",
}


def run(_name: str, words: list[str]) -> int:
    """Run it; the exit status of the job."""
    options, command = understood_before(words, OPTIONS)
    passed: list[str] = []
    host = ""
    for given in options:
        match given.name:
            case "append":
                passed += ["-append", given.values[0]]
            case "remote":
                host = given.values[0]
            case "local":
                passed += ["-universe", "local"]
            case _:
                pass
    if not host and len(command) > 1 and "." in command[0] and "/" not in command[0]:
        host, *command = command
    if not command:
        raise WordsError("which command?  Write it behind the options")
    return condor_run.run("condor_run", [*passed, *reaching(host), *command])


def reaching(host: str) -> list[str]:
    """The options by which the entrypoint of a host is asked."""
    if not host:
        return []
    name = host.partition(":")[0]
    return ["-pool", host if ":" in host or "/" in host else f"{host}:9619", "-name", name]
