"""What a starter is told about its job and its slot."""

import itertools
from pathlib import Path

import msgspec

from kettle.execution.attempts.job_spec import Account, ChirpPolicy, Input, Isolation, JobHooks, JobSpec
from kettle.execution.job_environment.job_ad import long_form
from kettle.execution.job_environment.site_caches import cache_files
from kettle.execution.system.cgroup_layout import CgroupLayout
from kettle.execution.system.linux import boottime
from kettle.transfer.data_rules import DataRule, read_rules
from kettle.transfer.plugin import Plugin
from kettle_services.startd.domain.ads import claim_ad, question
from kettle_services.startd.domain.image_choice import with_image
from kettle_services.startd.domain.state.claim import Claim, Now
from kettle_services.startd.domain.state.machine import Machine
from kettle_services.startd.machine import host
from kettle_services.startd.machine.container_offer import ContainerOffer
from kettle_services.startd.settings import StartdSettings
from kettle_wire.ads import Ad
from kettle_wire.commands.startd import Activation


class StarterOrders:
    """Makes the orders for starters out of claims and activations."""

    def __init__(
        self,
        machine: Machine,
        settings: StartdSettings,
        execute: Path,
        cgroups: CgroupLayout | None,
        containers: ContainerOffer,
        plugins: list[Plugin],
        isolation: Isolation,
    ) -> None:
        self._machine = machine
        self._facts = machine.facts
        self._settings = settings
        self._execute = execute
        self._cgroups = cgroups
        self._containers = containers
        self._plugins = plugins
        self._isolation = isolation
        self._data_rules = read_rules(settings.data)
        self._home = host.home()
        self._machine_ads: dict[str, str] = {}

    def of(
        self,
        claim: Claim,
        activation: Activation,
        account: Account | None,
        inputs: list[Input],
        now: Now,
    ) -> JobSpec:
        """
        The order for the starter of an attempt; a startd that is being stopped gives jobs less time to end.
        """
        rules = self._rules()
        if rules:
            inputs = [*inputs, *cache_files(rules)]
        return JobSpec(
            key=claim.key,
            job=activation.job,
            attempt=activation.attempt,
            schedd=claim.schedd,
            shadow=activation.shadow,
            execute=str(self._execute),
            state=str(self._settings.state_path),
            slot=self._facts.name_of(claim),
            cpus=claim.resources.cpus,
            memory=claim.resources.memory,
            disk=claim.resources.disk,
            devices=self._devices(claim),
            ad=self._with_image(claim, activation.ad, now),
            machine_ad=self._machine_ad(claim),
            inputs=inputs,
            received=sum(file.size for file in activation.inputs),
            began=boottime(),
            deadline=claim.deadline,
            sequence=claim.sequence,
            account=account,
            cgroups=self._cgroups,
            home=account.home if account is not None else self._home,
            kill_timeout=self.kill_timeout(claim, now),
            monitor_interval=self._settings.monitor_interval,
            measure_interval=self._settings.measure_interval,
            checkpoint_pause=self._settings.checkpoint_pause,
            enforce_disk=self._settings.enforce_disk,
            isolation=self._isolation,
            containers=self._containers.policy,
            plugins=self._plugins,
            plugin_lifetime=self._settings.transfer_plugin_lifetime,
            url_cache_mib=self._settings.url_cache_mib,
            url_cache=self._settings.url_cache,
            data_rules=rules,
            trace=activation.trace,
            hooks=hooks_of(self._settings, activation.ad),
            environment=self._settings.job_environment,
            chirp=ChirpPolicy(
                files=self._settings.enable_chirp and self._settings.enable_chirp_io,
                updates=self._settings.enable_chirp and self._settings.enable_chirp_updates,
                delayed=self._settings.chirp_delayed_update_prefix
                if self._settings.enable_chirp and self._settings.enable_chirp_delayed
                else (),
                commands=self._settings.enable_chirp and self._settings.enable_pool_access,
                sessions=self._settings.enable_chirp,
                nodes=self._settings.enable_chirp,
                services=self._settings.enable_published_services,
            ),
        )

    def _with_image(self, claim: Claim, job: Ad, now: Now) -> Ad:
        expression = str(self._settings.singularity_image_expr)
        if expression == "undefined":
            return job
        return with_image(expression, job, lambda: claim_ad(self._machine, claim, now=now.time), now.context)

    def _rules(self) -> list[DataRule]:
        """
        The site's rules; programs, which know no other way, are not sent to a cache that a probe has found away.
        """
        if self._machine.probed.get("HasXRootDCache") is not False:
            return self._data_rules
        return [
            msgspec.structs.replace(rule, programs=rule.programs and not rule.cache.startswith("root"))
            for rule in self._data_rules
        ]

    def kill_timeout(self, claim: Claim, now: Now) -> float:
        """Seconds that a job on a claim has after its soft kill signal, if it does not ask for fewer."""
        own = question(self._machine, claim, now).seconds("MachineMaxVacateTime")
        return max(0.0, min(own, self._settings.shutdown_kill_timeout) if self._machine.stopping else own)

    def _devices(self, claim: Claim) -> dict[str, list[str]]:
        """
        Ids by tag: of all that anybody has here, also if it is not found any more; what is not the job's is hidden from it.
        """
        others = [each.devices for each in self._machine.claims.values()]
        return {tag: claim.devices.get(tag, []) for tag in {*self._facts.devices, *itertools.chain(*others)}}

    def _machine_ad(self, claim: Claim) -> str:
        """The slot's ad as jobs read it; the same for all jobs of a claim."""
        text = self._machine_ads.get(claim.key.claim)
        if text is None:
            still = msgspec.structs.replace(claim, attempt=None)
            text = long_form(claim_ad(self._machine, still, now=claim.made))
            self._machine_ads[claim.key.claim] = text
        return text

    def forget(self, claim: str) -> None:
        """The claim is over."""
        self._machine_ads.pop(claim, None)


def hooks_of(settings: StartdSettings, ad: Ad) -> JobHooks | None:
    """What is run around a job; keywords are the same in any case."""
    own = ad.get("HookKeyword")
    known = {name.lower(): hooks for name, hooks in settings.job_hooks.items()}
    asked = own if isinstance(own, str) and not settings.job_hook_keyword else settings.job_hook_keyword
    found = (known.get(name.lower()) for name in (asked, settings.default_job_hook_keyword))
    return next((hooks for hooks in found if hooks is not None), None)
