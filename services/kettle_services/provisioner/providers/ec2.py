"""
EC2, and what speaks as it does: a machine is an instance, which is terminated when it switches itself off.
"""

from pathlib import Path
from typing import Annotated, Any, ClassVar, Final

import botocore.exceptions as errors
import botocore.session
import msgspec
from botocore.config import Config
from botocore.loaders import Loader

from kettle_services.provisioner.domain import ec2_answers
from kettle_services.provisioner.domain.words import cleaned
from kettle_services.provisioner.port import (
    Found,
    InDoubtError,
    ProviderError,
    Room,
    UnavailableError,
)
from kettle_services.provisioner.providers.bootstrapping import machine_script
from kettle_services.provisioner.providers.settings import ProviderSettings, options_of
from kettle_services.provisioner.providers.threads import Threads
from kettle_wire.bootstrap import Bootstrap
from kettle_wire.leases import ErrorClass, Handle, MachineFound, MachineState, Order
from kettle_wire.worker_pools import Market, Offer

_MODELS: Final = Loader()
"""Reads what botocore knows of a service once, since that is megabytes."""
_SPOT_NOTICE: Final = "http://169.254.169.254/latest/meta-data/spot/instance-action"
_SESSION: Final = "http://169.254.169.254/latest/api/token"
"""Where an instance has the token with which it may ask there."""
_PAGE: Final = 500
_QUOTA: Final = "get_service_quota"
"""The only operation that is another service's."""
_UNSENT: Final = (
    errors.EndpointConnectionError,
    errors.ConnectTimeoutError,
    errors.ProxyConnectionError,
    errors.SSLError,
)
"""What went wrong before anything was asked."""
_NO_CREDENTIAL: Final = (
    errors.NoCredentialsError,
    errors.PartialCredentialsError,
    errors.CredentialRetrievalError,
    errors.ProfileNotFound,
    errors.UnauthorizedSSOTokenError,
)


class Ec2Options(msgspec.Struct, frozen=True, kw_only=True):
    """
    What an offer may say besides image (`template`, an AMI or a launch template), type (`flavour`), zone and market.
    """

    subnet: str = ""
    """Its id; empty: that of the zone."""
    security_groups: list[str] = []
    """Their ids; a worker needs no way in, only out."""
    key_name: str = ""
    """The key pair that lets people in."""
    instance_profile: str = ""
    """The role that instances have."""
    spot_price: str = ""
    """The highest for an hour; empty: that of an instance that is not spot."""
    root_device: str = ""
    """With `disk`: the name of the volume that is to be so large, such as `/dev/xvda`."""


class Ec2Settings(ProviderSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One region of one account."""

    OPTIONS: ClassVar[type[msgspec.Struct]] = Ec2Options

    region: Annotated[str, msgspec.Meta(min_length=1)]
    """As `eu-west-1`."""
    endpoint: str = ""
    """URL of a service that is not Amazon's."""
    credentials_file: str = ""
    """
    A file as `~/.aws/credentials`; empty: what the provisioner's own machine and environment have, as a role of the instance.
    """
    profile: str = "default"
    """The section of it."""
    power_off: str = "shutdown -P"
    """The command with which instances switch themselves off; it takes `now`, or `+` and minutes."""
    quota: str = ""
    """
    The code of the service quota that bounds the cores of all instances, such as `L-1216C47A` of those on demand, which count against
    it if they are no spot ones; empty: quotas show when they are met.
    """
    calls: Annotated[int, msgspec.Meta(ge=1, le=100)] = 8
    """So many questions at the same time."""

    async def open(self, deployment: str) -> "Ec2":
        """The provider."""
        if self.credentials_file and not Path(self.credentials_file).is_file():
            raise ProviderError(
                ErrorClass.CONFIG, f"credentials_file: there is no file {self.credentials_file}"
            )
        return Ec2(self, deployment)


class Ec2:
    """Instances of one deployment."""

    visibility = 30.0

    def __init__(self, settings: Ec2Settings, deployment: str) -> None:
        self._settings: Final = settings
        self._deployment: Final = deployment
        self._threads: Final = Threads(settings.calls, "ec2")
        self._clients: Final[dict[str, Any]] = {}
        """By service."""

    async def check(self, offer: Offer) -> list[str]:
        """What a dry run says."""
        try:
            asked = _request(offer)
        except ProviderError as error:
            return [str(error)]
        try:
            await self._ask("run_instances", DryRun=True, **asked)
        except errors.ClientError as error:
            code, status, words = _said(error)
            if code == ec2_answers.WOULD_WORK:
                return []
            known = ec2_answers.error_of(code, status)
            if known in {None, ErrorClass.AUTH, ErrorClass.RATE, ErrorClass.TRANSIENT}:
                raise self._refusal(error) from None
            return [f"offer {offer.name}: {words}"]
        except errors.ParamValidationError as error:
            return [cleaned(f"offer {offer.name}: {error}")]
        raise UnavailableError("a dry run was answered as if it were none")

    async def create(self, order: Order, bootstrap: Bootstrap) -> Handle:
        """Run one instance.  Nothing here asks twice, and if the network does, ClientToken makes it one."""
        spot = order.offer.market is Market.SPOT and not bootstrap.notices.url
        notices = bootstrap.notices
        if spot:
            notices = msgspec.structs.replace(notices, url=_SPOT_NOTICE, token_url=_SESSION)
        told = msgspec.structs.replace(bootstrap, notices=notices)
        script = machine_script(told, self._settings.program, self._settings.before, self._settings.power_off)
        names = {
            "Name": order.lease,
            ec2_answers.LEASE: order.lease,
            ec2_answers.DEPLOYMENT: self._deployment,
        }
        tags = [{"Key": key, "Value": value} for key, value in names.items()]
        asked = {
            **_request(order.offer),
            "ClientToken": ec2_answers.client_token(self._deployment, order.lease, order.attempt),
            "TagSpecifications": [{"ResourceType": each, "Tags": tags} for each in ("instance", "volume")],
            "UserData": script,
        }
        try:
            said = await self._ask("run_instances", **asked)
        except errors.ClientError as error:
            code, status, words = _said(error)
            known = ec2_answers.error_of(code, status)
            if known is None:
                raise InDoubtError(words) from None
            raise ProviderError(known, cleaned(words, [bootstrap.token])) from None
        except errors.ParamValidationError as error:
            raise ProviderError(ErrorClass.REQUEST, cleaned(str(error), [bootstrap.token])) from None
        except UnavailableError as error:
            raise ProviderError(ErrorClass.TRANSIENT, str(error)) from None
        except (errors.HTTPClientError, errors.BotoCoreError) as error:
            raise InDoubtError(cleaned(str(error))) from None
        handle: Handle = said["Instances"][0]["InstanceId"]
        return handle

    async def find(self) -> Found:
        """All instances with our tag, page by page; where a page fails it is not complete."""
        filters = [
            {"Name": f"tag:{ec2_answers.DEPLOYMENT}", "Values": [self._deployment]},
            {"Name": "instance-state-name", "Values": list(ec2_answers.THERE)},
        ]
        machines: list[MachineFound] = []
        following: dict[str, str] = {}
        while True:
            try:
                page = await self._question(
                    "describe_instances", Filters=filters, MaxResults=_PAGE, **following
                )
            except UnavailableError:
                if not following:
                    raise
                return Found(machines=machines, complete=False)
            machines += ec2_answers.instances(page)
            if not page.get("NextToken"):
                return Found(machines=machines, complete=True)
            following = {"NextToken": page["NextToken"]}

    async def get(self, handle: Handle) -> MachineFound:
        """One instance: gone if it is terminated, or if EC2 knows none of this name any more."""
        gone = MachineFound(handle=handle, state=MachineState.GONE)
        try:
            page = await self._ask("describe_instances", InstanceIds=[handle])
        except errors.ClientError as error:
            if ec2_answers.is_unknown(_said(error)[0]):
                return gone
            raise self._refusal(error) from None
        except errors.BotoCoreError as error:
            raise UnavailableError(cleaned(str(error))) from None
        found = [each for each in ec2_answers.instances(page) if each.deployment == self._deployment]
        return found[0] if found else gone

    async def delete(self, handle: Handle) -> None:
        """Terminate an instance, if it is ours."""
        if (await self.get(handle)).state is not MachineState.GONE:
            await self._question("terminate_instances", InstanceIds=[handle])

    async def room(self) -> Room:
        """What the service quota leaves, whoever in the account has the instances."""
        if not self._settings.quota:
            return Room()
        asked = {"ServiceCode": "ec2", "QuotaCode": self._settings.quota}
        said = await self._question(_QUOTA, **asked)
        used, following = 0, dict[str, str]()
        states = [{"Name": "instance-state-name", "Values": ["pending", "running"]}]
        while True:
            page = await self._question("describe_instances", Filters=states, MaxResults=_PAGE, **following)
            used += ec2_answers.cores(page)
            if not page.get("NextToken"):
                return Room(cpus=max(0, int(said["Quota"]["Value"]) - used))
            following = {"NextToken": page["NextToken"]}

    async def console(self, handle: Handle) -> str:
        """What the instance wrote while it started, as EC2 keeps it."""
        if (await self.get(handle)).state is MachineState.GONE:
            return ""
        said = await self._question("get_console_output", InstanceId=handle)
        return str(said.get("Output") or "")

    async def close(self) -> None:
        """End the threads."""
        self._threads.close()

    async def _question(self, operation: str, **asked: Any) -> Any:
        """The answer to what may be asked again."""
        try:
            return await self._ask(operation, **asked)
        except errors.ClientError as error:
            raise self._refusal(error) from None
        except errors.BotoCoreError as error:
            raise UnavailableError(cleaned(str(error))) from None

    def _refusal(self, error: errors.ClientError) -> Exception:
        code, status, words = _said(error)
        match ec2_answers.error_of(code, status):
            case None | ErrorClass.TRANSIENT:
                return UnavailableError(words)
            case known:
                return ProviderError(known, words)

    async def _ask(self, operation: str, **asked: Any) -> Any:
        """
        The answer.  Raises UnavailableError if nothing was asked, ProviderError without a credential, and botocore's errors.
        """
        try:
            return await self._threads.call(self._call, operation, asked)
        except _UNSENT as error:
            raise UnavailableError(cleaned(str(error))) from None
        except _NO_CREDENTIAL as error:
            raise ProviderError(ErrorClass.AUTH, cleaned(str(error))) from None
        except errors.ClientError as error:
            if ec2_answers.error_of(*_said(error)[:2]) is ErrorClass.AUTH:
                self._clients.clear()  # the file may have another credential by then
            raise

    def _call(self, operation: str, asked: dict[str, Any]) -> Any:
        service = "service-quotas" if operation == _QUOTA else "ec2"
        client = self._clients.get(service)
        if client is None:
            client = self._clients[service] = self._opened(service)
        return getattr(client, operation)(**asked)

    def _opened(self, service: str) -> Any:
        settings = self._settings
        session = botocore.session.Session(profile=settings.profile if settings.credentials_file else None)
        if settings.credentials_file:
            session.set_config_variable("credentials_file", settings.credentials_file)
            session.set_config_variable("config_file", settings.credentials_file)
        session.register_component("data_loader", _MODELS)
        configuration = Config(
            retries={"total_max_attempts": 1},
            connect_timeout=settings.patience,
            read_timeout=settings.patience,
            max_pool_connections=settings.calls,
        )
        return session.create_client(
            service, region_name=settings.region, endpoint_url=settings.endpoint or None, config=configuration
        )


def _said(error: errors.ClientError) -> tuple[str, int, str]:
    """Code, status and words of an error."""
    answer: Any = error.response
    said = answer.get("Error", {})
    code = str(said.get("Code", ""))
    status = int(answer.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    return code, status, cleaned(f"{code}: {said.get('Message', '')}")


def _request(offer: Offer) -> dict[str, Any]:
    """An offer as EC2 is asked for it."""
    options = options_of(offer, Ec2Options)
    from_template = offer.template.startswith("lt-")
    spot: dict[str, str] = {"SpotInstanceType": "one-time"}
    if options.spot_price:
        spot["MaxPrice"] = options.spot_price
    volume = {"VolumeSize": ec2_answers.gibibytes(offer.disk), "DeleteOnTermination": True}
    known: dict[str, Any] = {
        "LaunchTemplate": {"LaunchTemplateId": offer.template} if from_template else None,
        "ImageId": "" if from_template else offer.template,
        "InstanceType": offer.flavour,
        "Placement": {"AvailabilityZone": offer.zone} if offer.zone else None,
        "InstanceMarketOptions": {"MarketType": "spot", "SpotOptions": spot}
        if offer.market is Market.SPOT
        else None,
        "SubnetId": options.subnet,
        "SecurityGroupIds": options.security_groups,
        "KeyName": options.key_name,
        "IamInstanceProfile": {"Name": options.instance_profile} if options.instance_profile else None,
        "BlockDeviceMappings": [{"DeviceName": options.root_device, "Ebs": volume}]
        if options.root_device and offer.disk
        else None,
    }
    asked = {key: value for key, value in known.items() if value}
    return {
        "MinCount": 1,
        "MaxCount": 1,
        "InstanceInitiatedShutdownBehavior": "terminate",
        # What a job can have its machine fetch does not carry a header: neither role nor user data are read in that way.
        "MetadataOptions": {"HttpTokens": "required", "HttpEndpoint": "enabled"},
        **asked,
    }
