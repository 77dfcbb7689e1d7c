"""What a job may not say of itself, compared with the code that acts on ads."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kettle.jobs import chirp_updates

ROOT = Path(__file__).parents[3]
ACTING = (
    "services/kettle_services/shadow", "services/kettle_services/starter", "services/kettle_services/startd", "services/kettle_services/schedd",
    "services/kettle_services/negotiator", "libs/kettle/execution", "libs/kettle/jobs", "libs/kettle/matchmaking",
    "libs/kettle/submit", "libs/kettle/transfer", "libs/kettle/userlog",
)  # fmt: skip
NAMING = (
    "libs/kettle/submit/known_attributes.py", "libs/kettle/userlog/event_to_ad.py", "libs/kettle/userlog/ad_to_event.py",
    "libs/kettle/userlog/foreign_events.py", "libs/kettle/userlog/parsing.py",
    "services/kettle_services/negotiator/domain/cycle_ad.py",
)  # fmt: skip
"""Here the events of logs and daemons have attributes, and no job has; or names are listed only."""
ATTRIBUTE = re.compile(r"[A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*")


def constants() -> Iterator[str]:
    """Strings in the code that acts on ads, which look like an attribute and do not name a class of ours."""
    texts, classes = set[str](), set[str]()
    naming = {ROOT / place for place in NAMING}
    assert all(module.is_file() for module in naming)
    for module in {module for place in ACTING for module in (ROOT / place).rglob("*.py")} - naming:
        for node in ast.walk(ast.parse(module.read_text())):
            match node:
                case ast.ClassDef(name=name):
                    classes.add(name)
                case ast.ImportFrom(names=names):
                    classes |= {each.name for each in names}
                case ast.Constant(value=str(text)) if ATTRIBUTE.fullmatch(text):
                    texts.add(text)
                case _:
                    pass
    yield from sorted(texts - classes)


def test_whatever_the_code_reads_no_job_sets() -> None:
    """A new attribute that anything acts on is refused before it is released."""
    names = list(constants())

    assert {"TransferInput", "Iwd", "Cmd", "WantIOProxy"} <= set(names)
    assert [] == [name for name in names if not chirp_updates.refusal(name)]


@pytest.mark.parametrize(
    "name",
    ["WantIOProxy", "TransferInput", "Iwd", "cmd", "Out", "Err", "In", "TransferPlugins", "EC2SecretAccessKey",
     "EC2AccessKeyId", "CheckpointDestination", "ContainerImage", "Environment", "Arguments", "OutputDestination",
     "x509userproxy", "X509UserProxyExpiration"],
)  # fmt: skip
def test_a_job_has_not_its_next_run_act_for_it(name: str) -> None:
    """What a run reads and writes, and with which keys, is what was submitted."""
    assert chirp_updates.refusal(name)


def test_a_job_has_words_of_its_own() -> None:
    """Whatever nothing of ours reads, it may set."""
    assert [""] * 4 == [
        chirp_updates.refusal(name) for name in ("Stage", "ChirpProgress", "MyEvents", "Fraction")
    ]
