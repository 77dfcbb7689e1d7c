"""`kettle classad`: expressions and ads tried out, converted and matched, without a pool."""

import argparse
import importlib
from typing import Final

from kettle_services.cli.options import json_option
from kettle_services.cli.output.screen import Screen

HELP: Final = """\
Try out what you want to write into a submit description or a policy; no pool is needed.

examples:
  kettle classad eval '1 + undefined ?: 2'
  kettle classad eval --my job.ad --target slot.ad Requirements
  kettle classad convert --to json slots.long
  kettle classad match job.ad slot.ad

kettle classad COMMAND --help explains each.
"""

_EVAL: Final = """\
The value of an expression, in new syntax, on one line.
Without --my it is evaluated in an empty ad: names are undefined then.
Where there is nothing but undefined or error, a terminal also gets the reason; --explain gives it anywhere,
and below false the clauses that are false, with the values of the names in them.

Exit status: 0 a value, also if it is undefined or error; 1 the expression cannot be parsed; 2 a mistake in what was typed,
or a file that is missing, cannot be read or does not hold exactly one ad; 3 the evaluation was given up, because it went
too deep, took too long, or a function could not serve its argument, as random(0).

examples:
  kettle classad eval '5 / 2.0'
  kettle classad eval 'strcat("a", 1, true)' --json
  kettle classad eval --my job.ad 'RequestMemory * 2'
  kettle classad eval --my job.ad --target slot.ad 'MY.RequestMemory <= TARGET.Memory'
  kettle classad eval -- '-x'                     an expression that begins with a minus
  kettle classad eval --batch < expressions.txt

--batch reads one expression a line and writes one line for each: its value, PARSE_ERROR, or EVAL_FAIL.
It evaluates in an empty ad and in UTC.  With --tsv a line has three columns: MY, TARGET and the expression, separated by
one tab; ads are in new syntax, an empty TARGET is no target, an empty MY an empty ad.
Exit status of --batch: 0, also if lines are PARSE_ERROR or EVAL_FAIL; 2 where a line of --tsv has another number of
columns: that is the end, and what came before it has been answered.

There are three engines, and they agree: "closure" is what services use for single ads, "columnar" what the negotiator
uses for all slots at once, "interpreter" the simple one with which the other two are compared.
"""

_CONVERT: Final = """\
Ads from one form of text to another: long (one "Name = value" per line, as -long prints it), new ([ a = 1; b = 2 ]),
json, jsonl (one object per line) and xml.
What a form cannot represent is refused; what came before it has already been written.
Reals are written with 16 significant digits, as HTCondor does; between Kettle's own services all digits are sent.
Octets that are not UTF-8 are octal escapes in JSON: "\\/Expr(\\"\\\\377\\")\\/".
A line that begins with *** ends an ad of the long form, as in HTCondor's history files.

Exit status: 0 all ads are written, none if there are none; 1 the wanted form cannot represent one; 2 a mistake in what was
typed, or a file that is missing or cannot be read.

examples:
  kettle classad convert --to json slots.long
  condor_status -long | kettle classad convert --to jsonl
  kettle classad convert --from xml --to long < slots.xml
"""

_MATCH: Final = """\
Whether two ads match: each one's Requirements, evaluated against the other, have to be true.
Shown are both Requirements, clause by clause, and both Ranks.  A name that stands for an expression of the same ad,
as in Requirements = START, is shown by its clauses.  Behind a clause that is false are the values of the names in it.

Exit status: 0 they match, 1 they do not; 2 a mistake in what was typed, or a file that is missing, cannot be read or does
not hold exactly one ad.

examples:
  kettle classad match job.ad slot.ad
  kettle classad match job.ad slot.ad --json
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    commands = parser.add_subparsers(dest="what", metavar="COMMAND", required=True)

    def add(name: str, says: str, description: str) -> argparse.ArgumentParser:
        return commands.add_parser(
            name,
            help=says,
            description=description,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )

    _eval_arguments(add("eval", "the value of an expression, with --json as JSON", _EVAL))
    _convert_arguments(add("convert", "ads from one form of text to another", _CONVERT))
    _match_arguments(add("match", "whether two ads match and why not, with --json as JSON", _MATCH))


def _eval_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("expression", nargs="?", metavar="EXPR", help="an expression in new syntax")
    parser.add_argument("--my", metavar="FILE", help="the ad in which it is evaluated; - is standard input")
    parser.add_argument("--target", metavar="FILE", help="the ad that it is matched against")
    parser.add_argument(
        "--engine",
        choices=("interpreter", "closure", "columnar"),
        default="closure",
        metavar="ENGINE",
        help="interpreter, closure or columnar; they agree (default: closure)",
    )
    parser.add_argument(
        "--explain", action="store_true", help="below the value: why it is undefined, error or false"
    )
    parser.add_argument(
        "--batch", action="store_true", help="read expressions from standard input, one a line"
    )
    parser.add_argument(
        "--tsv", action="store_true", help="with --batch: columns MY, TARGET and expression instead"
    )
    json_option(parser)


def _convert_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", default="-", metavar="FILE", help="ads (default: standard input)")
    forms = ("long", "new", "json", "jsonl", "xml")
    parser.add_argument(
        "--from",
        dest="source",
        choices=("auto", *forms),
        default="auto",
        metavar="FORM",
        help="the form of the ads; auto looks how they begin (default: auto)",
    )
    parser.add_argument(
        "--to",
        dest="wanted",
        choices=forms,
        required=True,
        metavar="FORM",
        help="the form to write: long, new, json, jsonl or xml",
    )


def _match_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("left", metavar="FILE", help="one ad, in any form; - is standard input")
    parser.add_argument("right", metavar="FILE", help="the other one")
    json_option(parser)


_MODULES: Final = {"eval": "evaluation", "convert": "conversion", "match": "matching"}


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Hand over to the module of the subcommand."""
    module = importlib.import_module(f"kettle_services.cli.classad.{_MODULES[arguments.what]}")
    return int(module.run(arguments, screen))
