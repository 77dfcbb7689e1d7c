"""
Applications of SCIF images (the Scientific Filesystem): several programs in one image, each with its own files and variables.

An application is below `/scif/apps/NAME`: `bin` and `lib`, and in `scif` its run script and the files that set its variables.  Its data are in
`/scif/data/NAME`.  A task runs in it as with `--app` of Apptainer.  Pure.
"""

from collections.abc import Sequence
from typing import Final

_SHELL: Final = "/bin/sh"
_NO_SUCH_PROGRAM: Final = 127
_SCRIPT: Final = f"""
set -a
SCIF_APPS=/scif/apps SCIF_DATA=/scif/data SCIF_APPNAME=$0
SCIF_APPROOT=$SCIF_APPS/$0 SCIF_APPDATA=$SCIF_DATA/$0
SCIF_APPBIN=$SCIF_APPROOT/bin SCIF_APPLIB=$SCIF_APPROOT/lib SCIF_APPMETA=$SCIF_APPROOT/scif
SCIF_APPENV=$SCIF_APPMETA/env SCIF_APPRUN=$SCIF_APPMETA/runscript
SCIF_APPINPUT=$SCIF_APPDATA/input SCIF_APPOUTPUT=$SCIF_APPDATA/output
PATH=$SCIF_APPBIN:$PATH LD_LIBRARY_PATH=$SCIF_APPLIB${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}
for file in "$SCIF_APPENV"/*.sh; do
    if test -r "$file"; then . "$file"; fi
done
set +a
unset file
if ! test -d "$SCIF_APPROOT"; then
    echo "the image has no application $0 (there is no $SCIF_APPROOT)" >&2
    exit {_NO_SUCH_PROGRAM}
fi
test $# -gt 0 || set -- "$SCIF_APPRUN"
exec "$@"
"""


def in_application(name: str, words: Sequence[str]) -> list[str]:
    """
    A program and its arguments, run as one of an application; without words: what the application itself runs.
    """
    return [_SHELL, "-c", _SCRIPT, name, *words]
