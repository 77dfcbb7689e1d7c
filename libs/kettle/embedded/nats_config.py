"""
The configuration of our NATS server: whom it trusts, and its limits.

It is written again at every start from what the pool knows, so that nobody has to edit it.
"""

import json
from collections.abc import Sequence

import msgspec

from kettle.auth.trust.server import Statements
from kettle.embedded.nats_listener import LOOPBACK, NatsListener


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What a pool on one machine may take of it."""

    max_payload: str = "8MB"
    max_memory: str = "256MB"
    max_file: str = "12GB"
    max_connections: int = 16_384
    write_deadline: str = "10s"
    sign_in_s: float = 1.5
    """
    How long somebody may take to show who he is, and iam to answer who comes with a token.  Who is asked about while no iam hears
    it comes again after that, and is to wait two seconds at the most.
    """


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
    trust: Statements,
    limits: Limits,
    member: Member | None = None,
    listener: NatsListener | None = None,
) -> str:
    """
    The text of the file.

    Without a `listener` the server is reached on the loopback interface alone, in the clear.
    """
    accounts = "\n".join(f"  {key}: {_quoted(jwt)}" for key, jwt in trust.accounts.items())
    host = listener.host if listener else LOOPBACK
    return f"""\
server_name: {_quoted(name)}
listen: {_quoted(f"{host}:{port}")}
pid_file: {_quoted(pid_file)}
max_payload: {limits.max_payload}
max_connections: {limits.max_connections}
write_deadline: "{limits.write_deadline}"
authorization {{ timeout: {limits.sign_in_s} }}
jetstream {{
  store_dir: {_quoted(store)}
  max_memory_store: {limits.max_memory}
  max_file_store: {limits.max_file}
}}
max_control_line: 64KB
operator: {_quoted(trust.operator)}
system_account: {trust.system}
resolver: MEMORY
resolver_preload: {{
{accounts}
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


def _quoted(text: str) -> str:
    return json.dumps(text)
