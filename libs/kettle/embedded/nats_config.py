"""
The configuration of our NATS server: who may do what on it, and its limits.

It is written again at every start from what the pool knows, so that nobody has to edit it.
"""

import json
from collections.abc import Mapping, Sequence

import msgspec

from kettle.embedded.nats_listener import LOOPBACK, NatsListener


class Permissions(msgspec.Struct, frozen=True):
    """
    The subjects on which a role may publish and to which it may subscribe; `*` and `>` as in NATS.

    `replies` lets it also answer each request that it receives, on whatever subject the asker named.
    """

    publish: Sequence[str] = ()
    subscribe: Sequence[str] = ()
    replies: bool = False


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What a pool on one machine may take of it."""

    max_payload: str = "8MB"
    max_memory: str = "256MB"
    max_file: str = "12GB"
    max_connections: int = 4096
    write_deadline: str = "10s"


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """
    One server's place in a cluster on this machine: its ports on the loopback interface, and those of the others.
    """

    cluster: str
    port: int
    """Where the other servers connect to this one."""
    others: Sequence[int]
    """Where this one connects to the others."""
    secret: str
    """
    The secret that the servers of a cluster share, so that no other process on the machine can join; letters and
    digits.
    """
    status_port: int
    """Of the server's own pages over HTTP: `/healthz`, `/jsz`."""


def render(
    *,
    name: str,
    port: int,
    store: str,
    pid_file: str,
    users: Mapping[str, Permissions],
    limits: Limits,
    member: Member | None = None,
    listener: NatsListener | None = None,
) -> str:
    """
    The text of the file; `users` maps public keys to what their holders may do.

    Without a `listener` the server is reached on the loopback interface alone, in the clear.
    """
    entries = "\n".join(_user(key, permissions) for key, permissions in users.items())
    host = listener.host if listener else LOOPBACK
    return f"""\
server_name: {_quoted(name)}
listen: {_quoted(f"{host}:{port}")}
pid_file: {_quoted(pid_file)}
max_payload: {limits.max_payload}
max_connections: {limits.max_connections}
write_deadline: "{limits.write_deadline}"
jetstream {{
  store_dir: {_quoted(store)}
  max_memory_store: {limits.max_memory}
  max_file_store: {limits.max_file}
}}
authorization {{
  users: [
{entries}
  ]
}}
{_cluster(member) if member else ""}{listener.configuration() if listener else ""}"""


def _cluster(member: Member) -> str:
    routes = ", ".join(_quoted(f"nats://route:{member.secret}@127.0.0.1:{port}") for port in member.others)
    return f"""\
http: "127.0.0.1:{member.status_port}"
cluster {{
  name: {_quoted(member.cluster)}
  listen: "127.0.0.1:{member.port}"
  authorization {{ user: "route", password: {_quoted(member.secret)} }}
  routes: [{routes}]
}}
"""


def _user(key: str, permissions: Permissions) -> str:
    rights = [f"publish: {_allowed(permissions.publish)}", f"subscribe: {_allowed(permissions.subscribe)}"]
    if permissions.replies:
        rights.append("allow_responses: { max: 1024, expires: 1h }")
    return f"    {{ nkey: {key}, permissions: {{ {', '.join(rights)} }} }}"


def _allowed(subjects: Sequence[str]) -> str:
    # To the server an empty list of what is allowed would mean everything.
    if not subjects:
        return '{ deny: [">"] }'
    return f"{{ allow: [{', '.join(_quoted(subject) for subject in subjects)}] }}"


def _quoted(text: str) -> str:
    return json.dumps(text)
