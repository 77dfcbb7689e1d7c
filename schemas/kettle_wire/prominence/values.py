"""What the fields of documents have in common."""

from decimal import Decimal
from typing import Annotated, Final

import msgspec

LARGEST: Final = 2**31 - 1

Count = Annotated[int, msgspec.Meta(ge=1, le=LARGEST)]
Gigabytes = Annotated[float, msgspec.Meta(gt=0, le=2**20)]
"""Fractions are allowed."""
Number = Annotated[Decimal, msgspec.Meta(extra_json_schema={"type": "number", "format": "decimal"})]
"""Exactly as it is written: 0.1 is a tenth."""
Value = str | int | float | bool
"""What a program is given as text."""

_LETTERS: Final = "made of letters, digits, blanks, - _ . and /"
_BELOW: Final = r"(?!/)(?!(.*/)?\.\.(/.*)?$).+"
"""A relative path that does not lead upwards."""

Name = Annotated[str, msgspec.Meta(pattern=r"^[a-zA-Z0-9\-_ ./]*$", max_length=512, description=_LETTERS)]
"""Descriptions of patterns are also the ends of sentences about what does not match: must be ..."""
JobName = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^(?!(.*/)?\.\.(/.*)?$)[a-zA-Z0-9\-_ ./]+$",
        max_length=512,
        description=f"{_LETTERS}, without .. as a part",
    ),
]
"""Of a job in a workflow: part of names of directories and of outputs."""
LabelName = Annotated[
    str, msgspec.Meta(pattern=r"^[a-zA-Z0-9]+$", max_length=512, description="made of letters and digits")
]
LabelValue = Annotated[
    str,
    msgspec.Meta(pattern=r"^[\w\-./]+$", max_length=512, description="made of letters, digits, _ - . and /"),
]
VariableName = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^[a-zA-Z_][a-zA-Z0-9_]*$",
        max_length=512,
        description="made of letters, digits and _, and begin with no digit",
    ),
]
"""Of a parameter or of an environment variable."""
AbsolutePath = Annotated[str, msgspec.Meta(pattern=r"^/.*$", max_length=4096, description="an absolute path")]
OutputPath = Annotated[
    str,
    msgspec.Meta(pattern=f"^{_BELOW}$", max_length=4096, description="a path below the job's directory"),
]
Location = Annotated[
    str,
    msgspec.Meta(
        pattern=rf"^(https?://.+|(?!.*://){_BELOW})$",
        max_length=8192,
        description="a URL of http or https, or the name of an uploaded file: FILE or GROUP/FILE",
    ),
]


class Document(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True
):
    """A document, or a part of one."""
