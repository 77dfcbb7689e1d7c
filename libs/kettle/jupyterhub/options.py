"""What people choose before their server starts: a profile, and its size and image where they may."""

import html
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from kettle.jupyterhub.errors import ServerFailedError
from kettle.jupyterhub.server_orders import OfferedProfile, ServerSize

_SIZES: Final = (
    ("cpus", "Cores", 1),
    ("memory", "Memory (MiB)", 128),
    ("disk", "Disk (MiB)", 128),
    ("gpus", "GPUs", 1),
)
"""Field, label, and step."""


class ChosenOptions(ServerSize, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What somebody has chosen, in the form or by the hub's REST API."""

    profile: str = ""
    """Empty: the usual one."""
    image: str = ""

    @property
    def size(self) -> ServerSize:
        """Without the rest."""
        return ServerSize(cpus=self.cpus, memory=self.memory, disk=self.disk, gpus=self.gpus)


def chosen(options: Mapping[str, Any]) -> ChosenOptions:
    """Raises ServerFailedError: these are no such options."""
    try:
        return msgspec.convert({**options}, ChosenOptions, strict=False)
    except msgspec.ValidationError as error:
        raise ServerFailedError(f"the options of the server cannot be these: {error}") from error


def from_form(form: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """What a filled form says; what was left empty is what the profile says."""
    filled = {name: values[0].strip() for name, values in form.items() if values}
    return {name: value for name, value in filled.items() if value and not name.startswith("_")}


def form_of(profiles: Sequence[OfferedProfile]) -> str:
    """The inner part of the form."""
    rows = "\n".join(_row(each, usual=not number) for number, each in enumerate(profiles))
    sizes = "\n".join(
        f'<div class="form-group mb-3"><label for="kettle-{field}">{label}</label>'
        f'<input class="form-control" id="kettle-{field}" name="{field}" type="number" min="{0 if field == "gpus" else 1}" step="{step}"'
        ' placeholder="as in the profile"></div>'
        for field, label, step in _SIZES
    )
    return f"""\
<fieldset class="form-group mb-3"><legend>What shall run?</legend>
{rows}
</fieldset>
<details><summary>Another size or image</summary>
{sizes}
<div class="form-group mb-3"><label for="kettle-image">Image</label>
<input class="form-control" id="kettle-image" name="image" placeholder="as in the profile"></div>
</details>
"""


def _row(profile: OfferedProfile, *, usual: bool) -> str:
    name = html.escape(profile.name, quote=True)
    size = [f"{profile.cpus} core{'s' if profile.cpus > 1 else ''}", f"{profile.memory} MiB"]
    size += [f"{profile.gpus} GPU{'s' if profile.gpus > 1 else ''}"] if profile.gpus else []
    size += [profile.image] if profile.image else []
    about = " · ".join(html.escape(each) for each in [profile.about, *size] if each)
    checked = " checked" if usual else ""
    return (
        f'<div class="form-check"><input class="form-check-input" type="radio" name="profile" id="kettle-profile-{name}" value="{name}"'
        f'{checked}><label class="form-check-label" for="kettle-profile-{name}"><strong>{html.escape(profile.title or profile.name)}</strong>'
        f"<br><small>{about}</small></label></div>"
    )
