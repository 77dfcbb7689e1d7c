"""
Our half of the file-transfer plugin protocol beside HTCondor's bindings, which its plugins read and write ads with.
"""

import pytest

from kettle.transfer.plugin import Move
from kettle.transfer.plugin_protocol import answer, capabilities, question

classad2 = pytest.importorskip("classad2", reason="HTCondor's bindings, from the package htcondor")

MOVES = [Move('osdf://x/a "b"\\c', "/sandbox/a 'b'"), Move("http://x/f?k=v&l=ö", "/sandbox/f")]


def test_plugins_read_what_we_ask() -> None:
    """Each file, with whatever is in its name."""
    asked = [(ad["Url"], ad["LocalFileName"]) for ad in classad2.parseAds(question(MOVES))]
    assert [(move.url, move.path) for move in MOVES] == asked


@pytest.mark.parametrize("between", ["", "\n"])
def test_we_read_what_plugins_answer(between: str) -> None:
    """As `str` of an ad, one after the other, with all the attributes that there are."""
    good = {
        "TransferSuccess": True,
        "TransferProtocol": "osdf",
        "TransferType": "download",
        "TransferFileName": MOVES[0].path,
        "TransferFileBytes": 7,
        "TransferTotalBytes": 7,
        "TransferStartTime": 1700000000,
        "ConnectionTimeSeconds": 0.25,
        "TransferUrl": MOVES[0].url,
        "TransferErrorData": [{"DeveloperData": {"Attempts": 3}, "ErrorType": "Resolution"}],
    }
    bad = {"TransferSuccess": False, "TransferError": 'OSError: "no"\nway', "TransferUrl": MOVES[1].url}
    first, second = answer(between.join(str(classad2.ClassAd(ad)) for ad in (good, bad)))

    assert (MOVES[0].url, MOVES[0].path, True, 7) == (first.url, first.path, first.success, first.total)
    assert (MOVES[1].url, False, 'OSError: "no"\nway') == (second.url, second.success, second.error)


def test_we_read_what_plugins_say_of_themselves() -> None:
    """As the old form of an ad."""
    ad = {"MultipleFileSupport": True, "PluginType": "FileTransfer", "SupportedMethods": "osdf,Stash"}
    said = capabilities("/p", classad2.ClassAd(ad).printOld())
    assert (("osdf", "stash"), True) == (said.methods, said.several)
