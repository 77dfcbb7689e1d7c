"""
Instances of WfFormat 1.4 in the form that they have since 1.5: what was written apart from what ran, and files told once.

Until 1.4 tasks knew each other by their names, each said which files it has, and cores were `cores`.
"""

from collections.abc import Mapping
from typing import Any, Final, cast

VERSION: Final = "1.4"
_RAN: Final = {
    "runtimeInSeconds": "runtimeInSeconds",
    "cores": "coreCount",
    "memoryInBytes": "memoryInBytes",
    "command": "command",
}
_KEPT: Final = ("name", "parents", "children")


def is_one(document: object) -> bool:
    """Whether a document is to be of this version."""
    return isinstance(document, dict) and cast("dict[str, Any]", document).get("schemaVersion") == VERSION


def in_new_form(document: Mapping[str, Any]) -> dict[str, Any]:
    """
    The same instance as 1.5 has it; what is wrong in it stays so, for its reader to tell.
    """
    workflow = document.get("workflow")
    tasks: object = cast("dict[str, Any]", workflow).get("tasks") if isinstance(workflow, dict) else None
    if not isinstance(tasks, list):
        return {**document, "workflow": {"specification": {"tasks": tasks}}}
    sizes: dict[str, Any] = {}
    specified = [_specified(task, sizes) for task in cast("list[object]", tasks)]
    ran = [
        _ran(cast("dict[str, Any]", task)) for task in cast("list[object]", tasks) if isinstance(task, dict)
    ]
    return {
        **document,
        "workflow": {
            "specification": {
                "tasks": specified,
                "files": [{"id": name, "sizeInBytes": size} for name, size in sizes.items()],
            },
            "execution": {"tasks": ran},
        },
    }


def _specified(task: object, sizes: dict[str, Any]) -> object:
    if not isinstance(task, dict):
        return task
    said = cast("dict[str, Any]", task)
    found: dict[str, Any] = {key: said[key] for key in _KEPT if key in said}
    if "name" in said:
        found["id"] = said["name"]
    files = said.get("files", [])
    if not isinstance(files, list):
        return {**found, "inputFiles": files}
    for link, key in (("input", "inputFiles"), ("output", "outputFiles")):
        found[key] = [_file(each, sizes) for each in cast("list[object]", files) if _link(each) == link]
    return found


def _link(file: object) -> str:
    return str(cast("dict[str, Any]", file).get("link", "")).lower() if isinstance(file, dict) else "input"


def _file(file: object, sizes: dict[str, Any]) -> object:
    """Its identity: the path and the name."""
    if not isinstance(file, dict):
        return file
    said = cast("dict[str, Any]", file)
    name = f"{said.get('path', '')}{said.get('name', '')}"
    sizes.setdefault(name, said.get("sizeInBytes", 0))
    return name


def _ran(task: dict[str, Any]) -> dict[str, Any]:
    found = {new: task[old] for old, new in _RAN.items() if old in task}
    return {"runtimeInSeconds": 0.0, **found, "id": task.get("name")}
