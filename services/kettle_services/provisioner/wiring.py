"""How the parts of a provisioner hang together."""

from kettle import VERSION
from kettle.runtime import Runtime
from kettle.runtime.pool_connections import join_bus
from kettle_services.provisioner.deployment import deployment_of
from kettle_services.provisioner.ended_machines import tell_of_ends
from kettle_services.provisioner.hosted import hosted
from kettle_services.provisioner.join_tokens import JoinTokens, new_secret
from kettle_services.provisioner.service import Provisioner
from kettle_services.provisioner.settings import ProvisionerSettings
from kettle_wire.subjects import Subjects


async def serve(rt: Runtime, settings: ProvisionerSettings) -> None:
    """Answer until the process is asked to stop; machines stay."""
    deployment = deployment_of(settings)
    bus = await join_bus(rt, settings)
    providers = await rt.enter(hosted(settings, deployment))
    provisioner = Provisioner(
        providers,
        JoinTokens(bus, settings.iam, deployment),
        call_deadline=settings.call_deadline,
        secret=new_secret,
        telemetry=rt.telemetry,
    )
    await bus.serve("provisioner", settings.name, provisioner.served(), version=VERSION, shared=True)
    rt.loop(tell_of_ends(bus, Subjects(settings.pool), providers.values()), name="ends of machines")
    rt.ready()
    await rt.stopping.wait()
