"""Slurm: a machine is a pilot job, which starts the worker's program in one allocation."""

import math
from pathlib import Path
from typing import Annotated, ClassVar, Final

import msgspec

from kettle.commands.local import LocalCommands
from kettle.commands.phrases import SLURM
from kettle.commands.port import EndNotSeenError, NotStartedError, Ran
from kettle.worker_pools.texts import span_text
from kettle_services.provisioner.domain import slurm_answers
from kettle_services.provisioner.domain.identity import mark
from kettle_services.provisioner.domain.words import cleaned
from kettle_services.provisioner.port import (
    Found,
    InDoubtError,
    ProviderError,
    Room,
    UnavailableError,
)
from kettle_services.provisioner.providers.bootstrapping import worker_script
from kettle_services.provisioner.providers.settings import ProviderSettings, options_of
from kettle_wire.bootstrap import Bootstrap
from kettle_wire.leases import ErrorClass, Handle, MachineFound, MachineState, Order
from kettle_wire.worker_pools import Offer

_CONSOLE_BYTES: Final = 16_384


class SlurmOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What an offer may say besides its partition, which is its `template`."""

    account: str = ""
    """As for `sbatch --account`; the others as well."""
    qos: str = ""
    """Quality of service."""
    constraint: str = ""
    """Features of nodes."""
    gres: str = ""
    """In place of `gpu:N`."""
    reservation: str = ""
    """Its name."""
    licenses: str = ""
    """Each as `name:number`."""
    exclusive: bool = False
    """Whether the pilot has its node for itself."""


class SlurmSettings(ProviderSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A cluster whose commands `sbatch`, `squeue` and `scancel` are installed where the provisioner runs."""

    OPTIONS: ClassVar[type[msgspec.Struct]] = SlurmOptions

    configuration: str = ""
    """Path of `slurm.conf`; empty: where Slurm looks for it."""
    logs: str = ""
    """
    A directory that this machine and the nodes share, for what pilots write; empty: it is thrown away.
    """
    notice: Annotated[int, msgspec.Meta(ge=0, le=65_535)] = 120
    """Seconds before the time limit at which a pilot is told (SIGTERM) that it ends."""
    accounting: bool = False
    """
    Whether `sacct` knows ended jobs.  Without it a job is gone when the controller answers that it knows none of this number.
    """

    async def open(self, deployment: str) -> "Slurm":
        """The provider."""
        return Slurm(self, deployment)


class Slurm:
    """Pilot jobs of one account of a cluster."""

    visibility = 2.0

    def __init__(self, settings: SlurmSettings, deployment: str) -> None:
        self._settings: Final = settings
        self._deployment: Final = deployment
        environment = {"SLURM_TIME_FORMAT": "%s"}
        if settings.configuration:
            environment["SLURM_CONF"] = settings.configuration
        self._commands: Final = LocalCommands(environment)

    async def check(self, offer: Offer) -> list[str]:
        """
        What `sbatch --test-only` has against it: it asks the controller, and submits nothing.  Clusters take jobs that last longer than
        their partition lets them, and never start them, unless they are set up otherwise.
        """
        life = offer.life or 3600.0
        try:
            words = self._sbatch(offer, life, mark(self._deployment, "test"))
        except ProviderError as error:
            return [str(error)]
        ran = await self._ask([*words, "--test-only"], "#!/bin/sh\n")
        if ran.status != 0:
            self._refuse_if_away(ran)
            return [f"offer {offer.name}: {_said(ran)}"]
        told = await self._ask(["sinfo", "--noheader", "--format=%P %l"])
        if told.status != 0:
            raise self._refusal(told)
        longest = slurm_answers.longest(told.output, offer.template)
        if life <= longest:
            return []
        return [
            f"offer {offer.name}: its machines are to live for {span_text(life)}, and the partition ends jobs after {span_text(longest)}"
        ]

    def _sbatch(self, offer: Offer, life: float, name: str) -> list[str]:
        options = options_of(offer, SlurmOptions)
        seconds = min(life, offer.life) if offer.life else life
        output = str(Path(self._settings.logs) / "%j.log") if self._settings.logs else "/dev/null"
        words = [
            "sbatch", "--parsable", "--no-requeue", f"--job-name={name}", f"--comment={name}", "--nodes=1", "--ntasks=1",
            f"--cpus-per-task={offer.cpus}", f"--mem={offer.memory}M", f"--time={max(1, math.ceil(seconds / 60))}",
            f"--signal=B:TERM@{self._settings.notice}", f"--output={output}",
        ]  # fmt: skip
        gres = options.gres or (f"gpu:{offer.gpus}" if offer.gpus else "")
        named = {"partition": offer.template, "account": options.account, "qos": options.qos, "gres": gres,
                 "constraint": options.constraint, "reservation": options.reservation, "licenses": options.licenses,
                 "tmp": f"{offer.disk}M" if offer.disk else ""}  # fmt: skip
        words += [f"--{key}={value}" for key, value in named.items() if value]
        return [*words, "--exclusive"] if options.exclusive else words

    async def create(self, order: Order, bootstrap: Bootstrap) -> Handle:
        """
        Submit a pilot.  Its script reaches the controller by standard input: no command line shows the token.
        """
        words = self._sbatch(order.offer, order.life, mark(self._deployment, order.lease))
        script = worker_script(bootstrap, self._settings.program, self._settings.before)
        try:
            ran = await self._commands.run(words, script, within=self._settings.patience)
        except NotStartedError as error:
            raise ProviderError(ErrorClass.CONFIG, str(error)) from None
        except EndNotSeenError as error:
            raise InDoubtError(str(error)) from None
        number = ran.output.strip().partition(";")[0]
        if ran.status == 0 and number.isdecimal():
            return number
        if ran.status <= 0 or SLURM.is_silent(ran.errors):  # ended by a signal, or said nothing that we know
            raise InDoubtError(_said(ran))
        if SLURM.is_unreachable(ran.errors):
            raise ProviderError(ErrorClass.TRANSIENT, _said(ran))
        raise ProviderError(slurm_answers.error_of(ran.errors), cleaned(_said(ran), [bootstrap.token]))

    async def find(self) -> Found:
        """All pilots that have not ended, of one question for all."""
        ran = await self._ask(["squeue", "--noheader", "--me", f"--format={slurm_answers.FORMAT}"])
        if ran.status != 0:
            raise self._refusal(ran)
        machines = [job.machine for job in slurm_answers.jobs(ran.output)]
        return Found(
            machines=[
                each
                for each in machines
                if each.deployment == self._deployment and each.state is not MachineState.GONE
            ],
            complete=True,
        )

    async def get(self, handle: Handle) -> MachineFound:
        """
        One pilot: gone if the controller says that it has ended, or answers that it has no such job and accounting, where
        there is any, agrees.
        """
        gone = MachineFound(handle=handle, state=MachineState.GONE)
        if not handle.isdecimal():
            return gone
        words = [
            "squeue",
            "--noheader",
            "--states=all",
            f"--jobs={handle}",
            f"--format={slurm_answers.FORMAT}",
        ]
        ran = await self._ask(words)
        if ran.status != 0 and not SLURM.is_unknown(ran.errors):
            raise self._refusal(ran)
        for job in slurm_answers.jobs(ran.output):
            if job.number == handle:
                return job.machine if job.machine.deployment == self._deployment else gone
        if self._settings.accounting and await self._accounted(handle) not in {None, MachineState.GONE}:
            raise UnavailableError(f"squeue has no job {handle}, and sacct says that it has not ended")
        return gone

    async def _accounted(self, handle: Handle) -> MachineState | None:
        words = ["sacct", "--noheader", "--parsable2", "--allocations", f"--jobs={handle}"]
        ran = await self._ask([*words, "--format=State,JobName,Comment"])
        if ran.status != 0:
            raise self._refusal(ran)
        return slurm_answers.accounted(ran.output, self._deployment)

    async def delete(self, handle: Handle) -> None:
        """Cancel a pilot: it gets SIGTERM, and after the cluster's KillWait SIGKILL."""
        machine = await self.get(handle)  # the number may be somebody else's by now
        if machine.state is MachineState.GONE:
            return
        ran = await self._ask(["scancel", handle])
        if ran.status != 0 and not SLURM.is_unknown(ran.errors):
            raise self._refusal(ran)

    async def room(self) -> Room:
        """It is not said: limits of associations show when they are met."""
        return Room()

    async def console(self, handle: Handle) -> str:
        """The end of what the pilot wrote, where `logs` is set."""
        path = Path(self._settings.logs) / f"{handle}.log"
        if not self._settings.logs or not handle.isdecimal() or not path.is_file():
            return ""
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _CONSOLE_BYTES))
            return file.read().decode(errors="replace")

    async def close(self) -> None:
        """There is nothing to give up."""

    async def _ask(self, words: list[str], standard_input: str = "") -> Ran:
        try:
            return await self._commands.run(words, standard_input, within=self._settings.patience)
        except NotStartedError as error:
            raise ProviderError(ErrorClass.CONFIG, str(error)) from None
        except EndNotSeenError as error:
            raise UnavailableError(str(error)) from None

    def _refuse_if_away(self, ran: Ran) -> None:
        if SLURM.is_away(ran.errors):
            raise UnavailableError(_said(ran))

    def _refusal(self, ran: Ran) -> Exception:
        self._refuse_if_away(ran)
        return ProviderError(slurm_answers.error_of(ran.errors), _said(ran))


def _said(ran: Ran) -> str:
    return cleaned(ran.errors or ran.output) or f"it ended with status {ran.status} and said nothing"
