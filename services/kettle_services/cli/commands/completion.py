"""`kettle completion`: what a shell needs to complete commands and options."""

import argparse
from typing import Final

from kettle_services.cli.output.screen import Screen

HELP: Final = """\
Print a script with which a shell completes the commands of kettle, their subcommands and their options.  Make it again when
another version of Kettle is installed.

examples:
  kettle completion bash > ~/.local/share/bash-completion/completions/kettle
  kettle completion zsh > "${fpath[1]}/_kettle"
  kettle completion fish > ~/.config/fish/completions/kettle.fish
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="which shell")


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Print the script."""
    from kettle_services.cli.completion import SHELLS, choices

    screen.block(SHELLS[arguments.shell](choices()).rstrip("\n"))
    return 0
