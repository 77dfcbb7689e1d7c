"""`kettle classad convert`: ads from one form of text to another."""

import argparse
from collections.abc import Iterable, Iterator

from kettle.classad import ClassAd, Form, NotRepresentable, write_ads
from kettle_services.cli.classad.sources import ads_of_file
from kettle_services.cli.errors import CommandError
from kettle_services.cli.output.screen import Screen


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Read, write, ad by ad."""
    form = None if arguments.source == "auto" else Form(arguments.source)
    ads = _Counted(ads_of_file(arguments.file, form))
    try:
        for text in write_ads(ads, Form(arguments.wanted)):
            # Strings are octets: whatever was read is written, in any locale.
            screen.octets(text.encode("utf-8", "surrogateescape"))
    except NotRepresentable as error:
        raise CommandError(f"ad {ads.count} cannot be written as {arguments.wanted}: {error}") from error
    return 0


class _Counted:
    """Ads, and how many of them have been taken."""

    def __init__(self, ads: Iterable[ClassAd]) -> None:
        self.count = 0
        self._ads = ads

    def __iter__(self) -> Iterator[ClassAd]:
        for ad in self._ads:
            self.count += 1
            yield ad
