"""
The hub of a facility in containers: people sign in at the site's issuer, and their servers are jobs of the pool.

What differs from site to site is in /etc/kettle/hub.toml, and its secrets are files in /run/secrets.
"""

import tomllib
from pathlib import Path
from typing import Any, Final

SETTINGS: Final[dict[str, Any]] = tomllib.loads(Path("/etc/kettle/hub.toml").read_text())
SECRETS: Final = Path("/run/secrets")
c: Any = get_config()  # type: ignore[name-defined]  # noqa: F821 - JupyterHub's


def secret(name: str) -> str:
    """A secret of the hub, by the name of its file."""
    return (SECRETS / name).read_text().strip()


issuer, url = SETTINGS["issuer"], SETTINGS["url"]
c.JupyterHub.bind_url = "http://0.0.0.0:8000"
c.JupyterHub.hub_ip = "0.0.0.0"  # noqa: S104 - of its container
c.JupyterHub.hub_port = 8081
c.JupyterHub.hub_connect_url = SETTINGS["hub_url"]
c.JupyterHub.cleanup_servers = False
c.JupyterHub.db_url = "sqlite:////srv/hub/jupyterhub.sqlite"
c.JupyterHub.cookie_secret_file = "/run/secrets/hub.cookies"  # noqa: S105 - where it is, not what
c.ConfigurableHTTPProxy.auth_token = secret("hub.proxy")
c.CryptKeeper.keys = [bytes.fromhex(secret("hub.crypt"))]

c.JupyterHub.authenticator_class = "generic-oauth"
c.Authenticator.enable_auth_state = True
c.Authenticator.auth_refresh_age = 0
c.Authenticator.allow_all = True
c.GenericOAuthenticator.login_service = SETTINGS.get("login", "the site")
c.GenericOAuthenticator.client_id = SETTINGS.get("client", "hub")
c.GenericOAuthenticator.client_secret = secret("hub.client")
c.GenericOAuthenticator.authorize_url = SETTINGS.get("authorize_url", f"{issuer}/authorize")
c.GenericOAuthenticator.token_url = SETTINGS.get("token_url", f"{issuer}/token")
c.GenericOAuthenticator.userdata_from_id_token = True
c.GenericOAuthenticator.username_claim = SETTINGS.get("username", "sub")
c.GenericOAuthenticator.scope = ["openid", "offline_access"]
c.GenericOAuthenticator.extra_authorize_params = {"resource": SETTINGS["audience"]}
c.GenericOAuthenticator.oauth_callback_url = f"{url}/hub/oauth_callback"

c.JupyterHub.spawner_class = "kettle"
c.KettleSpawner.gateway = SETTINGS.get("gateway", "https://gateway:8443")
c.KettleSpawner.gateway_ca = "/run/secrets/ca.pem"
c.KettleSpawner.hub_name = SETTINGS.get("name", "hub")
c.KettleSpawner.login_credential = SETTINGS.get("credential", "lab")
c.KettleSpawner.profiles = SETTINGS.get("profiles", [{"name": "notebook", "title": "Notebook"}])
c.Spawner.cmd = SETTINGS.get("command", ["jupyterhub-singleuser"])
c.Spawner.env_keep = ["PATH", "LANG"]
c.Spawner.environment = {"KETTLE_POOL_URL": SETTINGS.get("pool", "https://iam:9643")}
