"""
Logins of people at a hub, renewed by the hub's own client at their issuer while the access token is still good.

An `OAuthenticator` renews by itself only when the issuer does not take the access token any more, which is too late for servers that
have it; so its own request with the refresh token is made here.  Any other authenticator is asked as JupyterHub asks it.
"""

from inspect import isawaitable
from typing import Any

from tornado.httpclient import HTTPClientError
from tornado.web import HTTPError

from kettle.jupyterhub.errors import GatewayUnreachableError, NoTokenError


async def renew(authenticator: Any, user: Any) -> None:
    """
    Have the hub keep a renewed `auth_state` of a user of JupyterHub.

    Raises:
        NoTokenError: the issuer does not renew it.
        GatewayUnreachableError: the issuer does not answer.
    """
    renewed: dict[str, Any] | None
    state: dict[str, Any] = await user.get_auth_state() or {}
    if state.get("refresh_token") and hasattr(authenticator, "build_refresh_token_request_params"):
        renewed = await _exchanged(authenticator, state)
    else:
        refreshed: Any = await authenticator.refresh_user(user)  # True: it is good, False: it is over
        renewed = None if isinstance(refreshed, bool) else refreshed.get("auth_state")
    if renewed:
        await user.save_auth_state(renewed)


async def _exchanged(authenticator: Any, state: dict[str, Any]) -> dict[str, Any]:
    refresh = state["refresh_token"]
    wanted = authenticator.build_refresh_token_request_params(refresh)
    try:
        given = await authenticator.get_token_info(None, wanted)
    except (HTTPClientError, HTTPError, OSError) as error:
        status = getattr(error, "code", 0) or getattr(error, "status_code", 0)
        if 400 <= status < 500:
            raise NoTokenError(
                f"the issuer of your login does not renew it (status {status}): sign in again; what runs goes on"
            ) from error
        raise GatewayUnreachableError(
            f"the issuer of your login does not answer ({type(error).__name__})"
        ) from error
    kept = {"refresh_token": refresh, **given}
    about: dict[str, Any] = state.get(authenticator.user_auth_state_key) or {}
    made = authenticator.build_auth_state_dict(kept, about)
    return {**state, **(await made if isawaitable(made) else made)}
