"""What the machines of this installation are marked with."""

import hashlib
import re

from kettle.bus.credentials import Credential
from kettle_services.provisioner.settings import ProvisionerSettings


def deployment_of(settings: ProvisionerSettings) -> str:
    """
    The name in the settings, or one that all provisioners of a pool come to by themselves and those of others do not.
    """
    if settings.deployment:
        return settings.deployment
    name = re.sub(r"[^a-z0-9]+", "-", settings.pool.lower()).strip("-")[:40] or "kettle"
    account = Credential.read(settings.nats_credentials).account if settings.nats_credentials else ""
    return f"{name}-{hashlib.sha256(account.encode()).hexdigest()[:8]}" if account else name
