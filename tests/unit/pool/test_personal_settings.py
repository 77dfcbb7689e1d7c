"""The file that `kettle up` writes is understood by every service."""

import importlib
from pathlib import Path

import msgspec
import pytest

from kettle.pool.personal_settings import PERSONAL, render, slot_uid_base
from kettle.runtime import OwnerSettings, Settings
from kettle.testing.throwaway_pool import SHORT, SHORT_LEASE


def settings_of(role: str) -> type[Settings]:
    module = importlib.import_module(f"kettle_services.{role}.settings")
    kinds = [kind for kind in vars(module).values() if isinstance(kind, type) and issubclass(kind, Settings)]
    (found,) = [kind for kind in kinds if kind not in {OwnerSettings, Settings}]
    return found


@pytest.mark.parametrize("role", sorted({*PERSONAL, *SHORT}))
def test_the_service_understands_its_table(role: str, tmp_path: Path) -> None:
    """Every name and value in the file is one of the service's settings, and arrives there."""
    file = tmp_path / "kettle.toml"
    file.write_text(render(SHORT))
    loaded = settings_of(role).load(role, environ={}, toml_path=file)
    for name, value in SHORT.get(role, {}).items():
        found = getattr(loaded, name)
        assert value == ([*found] if isinstance(value, list) else found)


@pytest.mark.parametrize("role", sorted(PERSONAL))
def test_a_personal_pool_differs_from_production(role: str) -> None:
    """A setting is in the file because it is not the default; one that is the default has no place there."""
    defaults = settings_of(role)()
    assert [] == [line.name for line in PERSONAL[role] if line.value == getattr(defaults, line.name)]


def test_pools_of_root_do_not_share_accounts(tmp_path: Path) -> None:
    """Each pool of root gives its slots accounts of its own, inside the range that the startd accepts."""
    bases = {slot_uid_base(f"{number:016x}") for number in (0, 1, 2**64 - 1)}
    assert len(bases) == 3
    assert min(abs(one - other) for one in bases for other in bases if one != other) >= 1000
    file = tmp_path / "kettle.toml"
    file.write_text(render({}, pool_id="f" * 16))
    loaded = settings_of("startd").load("startd", environ={}, toml_path=file)
    assert slot_uid_base("f" * 16) == getattr(loaded, "slot_uid_base", 0)


def test_a_claim_outlives_missed_renewals() -> None:
    """
    In each pool a claim survives at least three lost renewals, and a lost job waits longer than its lease.
    """
    tests = SHORT["schedd"]
    defaults = msgspec.structs.asdict(settings_of("schedd").load("schedd", environ={}))
    personal = {**defaults, **{line.name: line.value for line in PERSONAL["schedd"]}}
    for lines in (personal, tests, {**tests, **SHORT_LEASE}):
        interval, lease, margin = lines["alive_interval"], lines["lease"], lines["lease_margin"]
        assert isinstance(interval, float)
        assert isinstance(lease, float)
        assert isinstance(margin, float)
        assert lease >= 4 * interval
        assert margin > 0
