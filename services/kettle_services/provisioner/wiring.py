"""How the parts of a provisioner hang together."""

from kettle import VERSION
from kettle.runtime import Runtime
from kettle.runtime.pool_connections import join_bus
from kettle_services.provisioner.settings import ProvisionerSettings


async def serve(rt: Runtime, settings: ProvisionerSettings) -> None:
    """Answer until the process is asked to stop; machines stay."""
    bus = await join_bus(rt, settings)
    await bus.serve("provisioner", settings.name, [], version=VERSION, shared=True)
    rt.ready()
    await rt.stopping.wait()
