"""
What the Infrastructure Manager is asked (RADL) and says.

A machine is an infrastructure of one virtual machine; its mark is among the tags of the RADL, which can be read again.
"""

import base64
import json
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

import msgspec

from kettle_services.provisioner.domain import web_answers
from kettle_services.provisioner.domain.identity import mark, marked
from kettle_services.provisioner.domain.openstack_answers import fault_of
from kettle_services.provisioner.domain.words import cleaned
from kettle_wire.leases import ErrorClass, MachineFound, MachineState
from kettle_wire.worker_pools import Offer

WITNESS: Final = "description kettle ( purpose = 'witness' )\ncontextualize ()\n"
"""
An infrastructure without machines, which costs nothing.  Whoever asks with a wrong password is shown an empty list, as if nothing were
there: a list is believed only if this is in it.
"""
_TAGS: Final = re.compile(r"instance_tags\s*=\s*'kettle=(?P<mark>[^',]*)")
_PROGRAM: Final = "/run/kettle-machine.sh"
_STATES: Final[Mapping[str, MachineState]] = {
    "pending": MachineState.PENDING,
    "running": MachineState.RUNNING,
    "configured": MachineState.RUNNING,
    "unconfigured": MachineState.RUNNING,
    "stopped": MachineState.BROKEN,
    "off": MachineState.BROKEN,
    "failed": MachineState.BROKEN,
    "deleting": MachineState.STOPPING,
}


class ImOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What an offer may say besides image (a URL, `template`), type (`flavour`) and zone."""

    public: bool = False
    """Whether the machine has an address that can be reached from everywhere."""
    user: str = ""
    """The account of the image that may become root."""


class StateSaid(msgspec.Struct, frozen=True):
    """Of an infrastructure and each of its machines."""

    state: str
    vm_states: dict[str, str] = {}


class Uri(msgspec.Struct, frozen=True):
    """Of an infrastructure."""

    uri: str

    @property
    def number(self) -> str:
        """Its last part, which is its name."""
        return self.uri.rpartition("/")[2]


class Uris(msgspec.Struct, frozen=True, rename={"uris": "uri-list"}):
    """A list of them."""

    uris: list[Uri]


def radl(offer: Offer, options: ImOptions, *, deployment: str, lease: str, script: str) -> str:
    """
    What is asked for.

    Raises:
        ValueError: a value of the offer cannot be written so.
    """
    known = {
        "instance_type": offer.flavour,
        "instance_tags": f"kettle={mark(deployment, lease)}",
        "availability_zone": offer.zone,
        "disk.0.image.url": offer.template,
        "disk.0.os.name": "linux",
        "disk.0.os.credentials.username": options.user,
        "net_interface.0.connection": "net",
    }
    texts = [f"{key} = {_quoted(value)}" for key, value in known.items() if value]
    sizes = [f"cpu.count >= {offer.cpus}", f"memory.size >= {offer.memory}m"]
    if offer.disk:
        sizes.append(f"disk.0.free_size >= {offer.disk}m")
    if offer.gpus:
        sizes.append(f"gpu.count >= {offer.gpus}")
    file = {
        "path": _PROGRAM,
        "permissions": "0700",
        "encoding": "b64",
        "content": base64.b64encode(script.encode()).decode(),
    }
    configuration = json.dumps({"write_files": [file], "runcmd": [["sh", _PROGRAM]]})  # JSON is YAML, too
    return "\n".join((
        f"network net ( outbound = '{'yes' if options.public else 'no'}' )",
        f"system {lease} (",
        " and\n".join((*sizes, *texts)),
        ")",
        f"configure {lease} (\n@begin\n{configuration}\n@end\n)",
        f"contextualize (\nsystem {lease} configure {lease} with cloud_init\n)",
        f"deploy {lease} 1",
        "",
    ))  # fmt: skip


def _quoted(value: str) -> str:
    if "'" in value or "\n" in value:
        raise ValueError(f"{value!r} cannot be written in RADL: it has a quotation mark or a line break")
    return f"'{value}'"


def owner(text: str) -> tuple[str, str] | None:
    """The deployment and the lease in a RADL; None: it is none of ours."""
    found = _TAGS.search(text)
    return None if found is None else marked(found["mark"])


def machine(number: str, ours: tuple[str, str], said: StateSaid, words: str = "") -> MachineFound:
    """What an infrastructure is for us; `words`: why it failed."""
    deployment, lease = ours
    state = _STATES.get(said.state, MachineState.RUNNING)  # unknown: whatever it is, it may cost something
    failed = said.state == "failed"
    return MachineFound(
        handle=number,
        state=state,
        lease=lease,
        deployment=deployment,
        words=cleaned(f"{said.state}: {words}" if words else said.state),
        error=fault_of(words) if failed else None,
    )


def error_of(status: int) -> ErrorClass | None:
    """The class of a refusal; None: something may have been made all the same."""
    if web_answers.is_in_doubt(status):
        return None
    return ErrorClass.CONFIG if status == HTTPStatus.UNSUPPORTED_MEDIA_TYPE else web_answers.error_of(status)


def message(body: Any) -> str:
    """The words of an error."""
    return str(body["message"]) if isinstance(body, dict) and "message" in body else str(body)


def authorization(user: str, password: str, clouds: str) -> str:
    """The header: lines of credentials, joined by the two characters of a written line break."""
    ours = f"id = im; type = InfrastructureManager; username = {user}; password = {password}"
    lines = [each.strip() for each in clouds.splitlines()]
    return "\\n".join([ours, *(each for each in lines if each and not each.startswith("#"))])
