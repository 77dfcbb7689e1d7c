"""
Makes `docs/reference/condor-config.md`: what becomes of HTCondor's knobs.

`docs/generate.py` writes the page; by itself this module only makes its text.
"""

from collections.abc import Iterator
from typing import Final

from kettle.schema_generation.markdown import table
from kettle_services.cli.condor_config.tables import KNOBS, METAKNOBS


def condor_config_page() -> str:
    """What becomes of HTCondor's knobs."""
    settings = [
        (
            f"`{knob}`",
            ", ".join(
                f"`{name}` of `[{service}]`" for service, _, name in map(_parted, KNOBS.settings_of(knob))
            ),
        )
        for knob in sorted(KNOBS.settings, key=str.lower)
    ]
    families = [(f"`{knobs}`", said) for knobs, said in KNOBS.families.items()]
    reasons = [(f"`{pattern}`", f"{why[0].upper()}{why[1:]}.") for pattern, why in KNOBS.no_settings.items()]
    templates = [
        (
            f"`use {category.upper()} : {name}`",
            ", ".join(f"`{knob}`" for knob in _set_by(text)) or "nothing: it is so anyway",
        )
        for category, names in METAKNOBS.items()
        for name, text in names.items()
    ]
    return "\n".join(
        [
            "# HTCondor's configuration\n",
            _CONDOR_CONFIG_HEAD,
            "## Knobs that are settings\n",
            table(("knob", "setting"), settings),
            "## Knobs that make a setting together\n",
            "`*` is a name of the site's: of a group, a resource, a transform.\n",
            table(("knobs", "setting"), families),
            "## Templates\n",
            "What `use CATEGORY : NAME` sets; the lines around it may change that.\n",
            table(("statement", "knobs"), templates),
            "## Knobs without a setting\n",
            "The first pattern that matches counts; a knob that matches none has no counterpart.\n",
            table(("knobs", "why"), reasons),
        ]
    )


def _parted(setting: str) -> tuple[str, str, str]:
    return setting.partition(".")


def _set_by(text: str) -> Iterator[str]:
    for line in text.strip().splitlines():
        name = line.partition("=")[0].strip()
        yield name if "=" in line and not line.startswith("use ") else line


_CONDOR_CONFIG_HEAD: Final = """\
`kettle convert condor_config FILE...` turns an HTCondor configuration into a `kettle.toml`.
It reads macros, `$(NAME:default)`, functions such as `$ENV()` and `$INT()`, `if`, `include`, `use`, values of several lines and the prefixes of daemons as HTCondor does.
What cannot be carried over is listed with its file, its line and the reason: nothing is left out silently.
`kettle config check FILE` looks at the result before it is used.

Expressions keep their text; macros in them are replaced.
A knob that is set for one daemon alone (`SCHEDD.CLAIM_WORKLIFE`) becomes that service's setting.
A knob for a daemon with a local name is listed: it belongs into `[master.environment."ROLE.NAME"]`.
"""
