"""condor_dag_checker."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from kettle.client.connections.condor_config import CondorConfig
from kettle_services.condor.arguments.grammar import Option, understood
from kettle_services.condor.errors import ToolError, WordsError

OPTIONS: Final = {
    "allowillegalchars": Option(),
    "checkexternalfiles": Option(),
    "checkjdl": Option(),
    "checkscripts": Option(),
    "checksubdags": Option(),
    "joinnodes": Option(),
    "json": Option(),
    "nojoinnodes": Option(),
    "statistics": Option(),
    "strict": Option(),
    "usedagdir": Option(),
}
HELP: Final = {
    "condor_dag_checker": """\
usage: condor_dag_checker [options] DAG_FILE...

Tell everything that is wrong with DAG files, each on its own; ends with status 1 if something is.

  -json                  as JSON, with the shape of each DAG
  -statistics            the shape of each DAG, as attributes
  -usedagdir             paths are relative to the directory of each file
  -allowillegalchars     names may have a +
  -checkjdl, -checkscripts, -checksubdags   look at submit descriptions, scripts, DAGs within, too
  -checkexternalfiles    look at all three
  -strict                what is not there is wrong, too
  -[no]joinnodes         says nothing here: no node is put between many parents and many children
""",
}


def run(_name: str, words: list[str]) -> int:
    """Check each file."""
    said: set[str] = set()
    paths: list[str] = []
    for given in understood(words, OPTIONS):
        if given.name:
            said.add(given.name)
        else:
            paths.append(given.values[0])
    if {"json", "statistics"} <= said:
        raise WordsError("-json and -statistics are two forms; say one of them")
    if not paths:
        raise ToolError("ERROR: No DAG file(s) provided for linting.", 2)
    found = [_Checked(path, frozenset(said)) for path in paths]
    if "json" in said:
        data = msgspec.json.encode([each.ad for each in found])
        sys.stdout.write(msgspec.json.format(data, indent=2).decode() + "\n")
    else:
        for each in found:
            sys.stdout.writelines(each.statistics() if "statistics" in said else each.issues())
    return 1 if any(each.faults for each in found) else 0


class _Checked:
    """One DAG file, with what is wrong with it."""

    def __init__(self, path: str, said: frozenset[str]) -> None:
        from kettle.dag.building.options import Options
        from kettle.dag.building.parser import check
        from kettle.dag.disk import reader
        from kettle.dag.outside import Outside, outside_faults
        from kettle.dag.summary import cycle_faults, summary

        knobs = CondorConfig(os.environ)
        options = Options(
            use_dag_directory="usedagdir" in said,
            allow_any_names="allowillegalchars" in said
            or knobs.flag("DAGMAN_ALLOW_ANY_NODE_NAME_CHARACTERS", default=False),
        )
        self.path = path
        dag, found = check([path], reader(Path.cwd()), options)
        every = "checkexternalfiles" in said
        outside = outside_faults(
            dag,
            Path.cwd(),
            options,
            Outside(
                descriptions=every or "checkjdl" in said,
                scripts=every or "checkscripts" in said,
                sub_dags=every or "checksubdags" in said,
            ),
            environ=os.environ,
            above=(Path(path).resolve(),),
        )
        cycles = cycle_faults(dag)
        wrong = [fault for fault, is_missing in outside if not is_missing or "strict" in said]
        self.faults = [*found, *wrong, *cycles]
        shape = summary(dag)
        counts = {
            "TotalNodes": shape.nodes,
            "NumNodes": shape.kinds["job"],
            "NumServiceNodes": shape.kinds["service"],
            "NumSubDAGs": shape.kinds["subdag"],
            "NumArcs": shape.edges,
            "NumSplices": shape.splices,
        }
        names = {"FinalNode": dag.final, "ProvisionerNode": dag.provisioner}
        self._shape: dict[str, bool | int | str | Sequence[int]] = {
            name: count for name, count in counts.items() if count or name == "TotalNodes"
        }
        self._shape |= {name: dag.nodes[index].name for name, index in names.items() if index is not None}
        if cycles:
            self._shape["IsCyclic"] = True
            self._shape["DetectedCycle"] = cycles[0].sentence.partition(": ")[2]
        elif shape.height:
            self._shape |= {
                "GraphHeight": shape.height,
                "GraphWidth": shape.width,
                "WidthByDepth": shape.widths,
            }

    @property
    def ad(self) -> dict[str, object]:
        """All of it, for programs."""
        errors = [
            {"Reason": fault.sentence, "SourceFile": fault.file, "SourceLine": fault.line}
            for fault in self.faults
        ]
        found: dict[str, object] = {"DagFile": self.path, **self._shape}
        return found | ({"NumErrors": len(errors), "Errors": errors} if errors else {})

    def statistics(self) -> list[str]:
        """Its shape, as attributes."""
        shown = {
            name: f"{{{','.join(map(str, value))}}}" if isinstance(value, tuple) else _attribute(value)
            for name, value in self._shape.items()
        }
        lines = sorted(f"{name} = {value}\n" for name, value in shown.items())
        return [f"=== {self.path} statistics ===\n", *lines, "\n"]

    def issues(self) -> list[str]:
        """What is wrong, for people; nothing if nothing is."""
        if not self.faults:
            return []
        count = f"{len(self.faults)} issue{'s' if len(self.faults) > 1 else ''}"
        told = [
            f"\t* {fault.file}:{fault.line} {fault.sentence}\n"
            if fault.line
            else f"\t* {fault.file} {fault.sentence}\n"
            for fault in self.faults
        ]
        return [f"Detected {count} in {self.path}:\n", *told, "\n"]


def _attribute(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value).lower()
