"""What OpenStack's Keystone and Nova are asked and say."""

import base64
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any, Final

import msgspec

from kettle_services.provisioner.domain import web_answers
from kettle_services.provisioner.domain.words import cleaned
from kettle_wire.leases import ErrorClass, MachineFound, MachineState
from kettle_wire.worker_pools import Offer

DEPLOYMENT: Final = "kettle-deployment"
LEASE: Final = "kettle-lease"
"""Metadata of servers."""
_GONE: Final = frozenset({"DELETED", "SOFT_DELETED"})
_COMING: Final = frozenset({"BUILD", "REBUILD"})
_OFF: Final = frozenset({"SHUTOFF", "SUSPENDED", "PAUSED", "SHELVED", "SHELVED_OFFLOADED", "RESCUE"})


class OpenStackOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What an offer may say besides image (`template`), flavour and zone."""

    networks: list[str] = []
    """UUIDs; empty: the network of the project."""
    security_groups: list[str] = []
    key_name: str = ""
    config_drive: bool = False


class Endpoint(msgspec.Struct, frozen=True):
    """Where a service is."""

    url: str
    interface: str
    region: str = ""


class Service(msgspec.Struct, frozen=True):
    """An entry of the catalog."""

    type: str
    endpoints: list[Endpoint] = []


class Catalog(msgspec.Struct, frozen=True):
    """Of a token."""

    catalog: list[Service] = []

    def url_of(self, kind: str, *, region: str, interface: str) -> str | None:
        """Of a service in a region; None: there is none."""
        for service in self.catalog:
            for each in service.endpoints:
                if service.type == kind and each.interface == interface and region in {"", each.region}:
                    return each.url.rstrip("/")
        return None


class Login(msgspec.Struct, frozen=True):
    """The answer of Keystone."""

    token: Catalog


class Flavour(msgspec.Struct, frozen=True):
    """A size of a server."""

    id: str
    name: str
    vcpus: int = 0
    ram: int = 0
    """MB."""


def login(
    *,
    user: str,
    project: str,
    user_domain: str,
    project_domain: str,
    application_credential: str,
    secret: str,
) -> dict[str, Any]:
    """What Keystone is asked: for an application credential if there is one, else for a user of a project."""
    if application_credential:
        given = {"id": application_credential, "secret": secret}
        return {
            "auth": {"identity": {"methods": ["application_credential"], "application_credential": given}}
        }
    who = {"name": user, "domain": {"name": user_domain}, "password": secret}
    return {
        "auth": {
            "identity": {"methods": ["password"], "password": {"user": who}},
            "scope": {"project": {"name": project, "domain": {"name": project_domain}}},
        }
    }


def server(
    offer: Offer, options: OpenStackOptions, flavour: str, *, deployment: str, lease: str, script: str
) -> dict[str, Any]:
    """What Nova is asked for."""
    known: dict[str, Any] = {
        "imageRef": offer.template,
        "availability_zone": offer.zone,
        "key_name": options.key_name,
        "networks": [{"uuid": each} for each in options.networks],
        "security_groups": [{"name": each} for each in options.security_groups],
        "config_drive": options.config_drive,
    }
    return {
        "server": {
            "name": lease,
            "flavorRef": flavour,
            "metadata": {DEPLOYMENT: deployment, LEASE: lease},
            "user_data": base64.b64encode(script.encode()).decode(),
            **{key: value for key, value in known.items() if value},
        }
    }


def machine(said: Mapping[str, Any]) -> MachineFound:
    """What a server is for us."""
    metadata = said.get("metadata") or {}
    status = str(said.get("status") or "")
    fault = str((said.get("fault") or {}).get("message") or "")
    state, error = _standing(status, fault)
    leaving = said.get("OS-EXT-STS:task_state") == "deleting" and state is not MachineState.GONE
    return MachineFound(
        handle=str(said.get("id")),
        state=MachineState.STOPPING if leaving else state,
        lease=str(metadata.get(LEASE, "")),
        deployment=str(metadata.get(DEPLOYMENT, "")),
        words=cleaned(f"{status}: {fault}" if fault else status),
        error=error,
    )


def _standing(status: str, fault: str) -> tuple[MachineState, ErrorClass | None]:
    if status in _GONE:
        return MachineState.GONE, None
    if status in _COMING:
        return MachineState.PENDING, None
    if status == "ERROR":  # it still uses the quota
        return MachineState.BROKEN, fault_of(fault)
    return (MachineState.BROKEN if status in _OFF else MachineState.RUNNING), None


def fault_of(words: str) -> ErrorClass:
    """Why a server that was accepted never came."""
    said = words.lower()
    if "no valid host" in said or "insufficient" in said or "exceeded maximum number of retries" in said:
        return ErrorClass.CAPACITY
    if "quota" in said:
        return ErrorClass.QUOTA
    return ErrorClass.IMAGE if "image" in said else ErrorClass.TRANSIENT


def error_of(status: int, words: str) -> ErrorClass | None:
    """The class of a refusal of Nova; None: something may have been made all the same."""
    said = words.lower()
    if web_answers.is_in_doubt(status):
        return None
    if status == HTTPStatus.FORBIDDEN and ("quota" in said or "exceeded" in said):
        return ErrorClass.QUOTA
    if status in {HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND} and "image" in said:
        return ErrorClass.IMAGE
    return web_answers.error_of(status)


def message(body: Any) -> str:
    """The words of an error, which are in an object of any name."""
    if isinstance(body, dict):
        for each in body.values():
            if isinstance(each, dict) and "message" in each:
                return str(each["message"])
    return str(body)


def shortcomings(offer: Offer, flavour: Flavour) -> Iterator[str]:
    """What a flavour has not that an offer says."""
    if flavour.vcpus < offer.cpus:
        yield f"offer {offer.name}: flavour {flavour.name} has {flavour.vcpus} cores, and the offer says {offer.cpus}"
    if flavour.ram < offer.memory:
        yield f"offer {offer.name}: flavour {flavour.name} has {flavour.ram} MB, and the offer says {offer.memory}"


def left(limits: Mapping[str, int], most: str, used: str) -> int | None:
    """What of a limit is left; None: there is none."""
    limit = limits.get(most, -1)
    return None if limit < 0 else max(0, limit - limits.get(used, 0))
