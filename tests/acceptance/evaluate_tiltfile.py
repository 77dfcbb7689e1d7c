"""
Evaluate a Tiltfile with Starlark, and print as JSON what it asks of Tilt: evaluate_tiltfile.py TILTFILE [ARGUMENT...].
"""

import json
import sys
from pathlib import Path
from typing import Any

import starlark

FUNCTIONS = (
    "docker_build", "docker_compose", "dc_resource", "k8s_yaml", "k8s_resource", "local_resource", "kustomize", "sync", "fall_back_on",
    "restart_container", "run",
)  # fmt: skip


def main() -> None:
    """Print the calls in the order in which they are made."""
    path, *arguments = sys.argv[1:]
    calls: list[dict[str, Any]] = []
    module = starlark.Module()

    def recorder(name: str) -> Any:
        def record(*positional: Any, **named: Any) -> Any:
            call = {"call": name, "positional": list(positional), "named": named}
            calls.append(call)
            return json.dumps([name, *positional])

        return record

    for name in FUNCTIONS:
        module.add_callable(name, recorder(name))
    module.add_callable("config_define_bool", lambda name: name)
    module.add_callable("config_parse", lambda: {"kubernetes": "--kubernetes" in arguments})
    module["TRIGGER_MODE_MANUAL"] = "manual"
    # Tilt's `config` is a module of its own, which this Starlark has no means to make.
    text = (
        Path(path)
        .read_text()
        .replace("config.define_bool", "config_define_bool")
        .replace("config.parse", "config_parse")
    )
    tree = starlark.parse("Tiltfile", text, starlark.Dialect.extended())
    starlark.eval(module, tree, starlark.Globals.standard())
    sys.stdout.write(json.dumps(calls))


main()
