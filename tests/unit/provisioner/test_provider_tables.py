import re

import pytest

from kettle_services.provisioner.providers.catalogue import KINDS, read, settings_class


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ({}, "provider cloud: it does not say its kind; there are process, slurm, "),
        ({"kind": "slrum"}, "provider cloud: unknown kind slrum; did you mean slurm?; there are "),
        ({"kind": "slurm", "notise": 3}, "provider cloud: unknown key notise; did you mean notice?"),
        ({"kind": "slurm", "notice": "soon"}, "provider cloud: Expected `int`, got `str` - at `$.notice`"),
        ({"kind": "kubernetes", "token": "secret"}, "provider cloud: unknown key token"),
        ({"kind": "im", "url": "http://127.0.0.1"}, "provider cloud: Object missing required field"),
    ],
)
def test_a_table_that_is_wrong_is_refused_in_one_sentence(table: dict[str, object], sentence: str) -> None:
    """A table of a provider is refused with its name, the key and the nearest known one."""
    with pytest.raises(ValueError, match=re.escape(sentence)):
        read("cloud", table)


def test_no_secret_is_a_setting() -> None:
    """What could be a secret is named by a file: no key has the word for one without `_file`."""
    secret = re.compile(r"password|token|secret|credentials?$")
    for kind in KINDS:
        for name in settings_class(kind).__struct_fields__:
            assert not secret.search(name) or name.endswith("_file") or name == "application_credential", (
                kind,
                name,
            )
