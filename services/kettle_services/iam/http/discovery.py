"""
What iam is, for programs: OAuth 2.0 authorization server metadata (RFC 8414), at the path of OpenID Connect's
too.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from kettle.auth.mapping.levels import Level
from kettle_services.iam.admissions import Pool
from kettle_wire.iam_http import GRANTS
from kettle_wire.way_in import WayIn


def metadata(url: str) -> dict[str, Any]:
    """
    The document; `url` is the issuer. Nobody signs in here by a browser, so there is no authorization
    endpoint.
    """
    return {
        "issuer": url,
        "jwks_uri": f"{url}/jwks.json",
        "token_endpoint": f"{url}/v1/token",
        "revocation_endpoint": f"{url}/v1/revoke",
        "introspection_endpoint": f"{url}/v1/introspect",
        "grant_types_supported": list(GRANTS),
        "response_types_supported": ["none"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["ES256"],
        "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post", "none"],
        "revocation_endpoint_auth_methods_supported": ["none"],
        "introspection_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
        "scopes_supported": [level.scope for level in (Level.READ, Level.WRITE, Level.ADMINISTRATOR)],
    }


def way_in(pool: Pool, sentinel: str, issuers: Mapping[str, Sequence[str]], trust_domain: str) -> WayIn:
    """How people come into this pool."""
    return WayIn(
        pool=pool.name,
        iam=pool.url,
        nats_url=pool.bus_url,
        ca=pool.bus_ca,
        sentinel=sentinel,
        trust_domain=trust_domain,
        issuers={issuer: list(audiences or (pool.url,)) for issuer, audiences in issuers.items()},
    )
