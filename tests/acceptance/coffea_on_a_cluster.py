#!/usr/bin/env python3
# /// script
# requires-python = ">=3.11"
# dependencies = ["coffea", "kettle[dask]"]
# ///
"""
An analysis with coffea on a Dask cluster of a pool: files of ROOT with muons are read in parts by workers, pairs of opposite charge are
made, and the histogram of their mass is the one that coffea makes without a cluster.

    python coffea_on_a_cluster.py PROFILE --workdir DIRECTORY

It needs what people have: KETTLE_HOME of a pool with the services sessions and gateway, and a profile whose `python` has coffea.
The last line begins with PROVEN, or with FAILED and why.
"""

import argparse
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import awkward as ak
import hist
import numpy as np
import uproot
from coffea import processor
from coffea.nanoevents import NanoAODSchema

from kettle.dask import KettleCluster

warnings.filterwarnings("ignore", message="Missing cross-reference")
BRANCHES = {
    "run": "uint32",
    "luminosityBlock": "uint32",
    "event": "uint64",
    "Muon": "var * {pt: float64, eta: float64, phi: float64, mass: float64, charge: int32}",
}
MUON_GEV = 0.105658
FILES = 4
EVENTS = 20_000
"""Of a file."""


class OppositePairs(processor.ProcessorABC):
    """The mass of pairs of muons with opposite charge."""

    def process(self, events: Any) -> dict[str, Any]:
        """Of some events."""
        pairs = ak.combinations(events.Muon, 2, fields=["one", "other"])
        pairs = pairs[pairs.one.charge != pairs.other.charge]
        made = hist.Hist.new.Reg(60, 0, 120, name="mass").Int64()
        made.fill(ak.flatten((pairs.one + pairs.other).mass))
        return {"mass": made, "events": len(events)}

    def postprocess(self, accumulator: Any) -> Any:
        """Nothing is left to do."""
        return accumulator


def written(directory: Path, number: int) -> str:
    """A file with events of its own."""
    draw = np.random.default_rng(number)
    counts = draw.poisson(2.2, EVENTS)
    size = int(counts.sum())
    columns = {
        "pt": 5 + draw.exponential(25, size),
        "eta": draw.normal(0, 1.2, size),
        "phi": draw.uniform(-np.pi, np.pi, size),
        "mass": np.full(size, MUON_GEV),
        "charge": draw.choice([-1, 1], size).astype(np.int32),
    }
    muons = ak.zip({name: ak.unflatten(column, counts) for name, column in columns.items()})
    path = directory / f"muons{number}.root"
    with uproot.recreate(path) as file:
        file.mktree("Events", BRANCHES)
        names = {
            "run": np.full(EVENTS, 1, np.uint32),
            "luminosityBlock": np.full(EVENTS, 1 + number, np.uint32),
            "event": np.arange(EVENTS, dtype=np.uint64),
        }
        file["Events"].extend({**names, "Muon": muons})
    return str(path)


def analysed(files: list[str], executor: Any) -> dict[str, Any]:
    """What coffea makes of the files."""
    runner = processor.Runner(executor=executor, schema=NanoAODSchema, chunksize=EVENTS // 4)
    return dict(runner({"muons": {"files": dict.fromkeys(files, "Events")}}, OppositePairs()))


def main() -> int:
    """Both ways, and whether they agree."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("profile")
    parser.add_argument("--workdir", type=Path, required=True)
    options = parser.parse_args()
    options.workdir.mkdir(parents=True, exist_ok=True)
    files = [written(options.workdir, number) for number in range(FILES)]
    here = analysed(files, processor.IterativeExecutor(status=False))
    with KettleCluster(2, profile=options.profile, cores=1, memory="1 GB", quiet=True) as cluster:
        with cluster.get_client() as client:
            client.wait_for_workers(2, timeout=120)
            client.register_worker_callbacks(_have_processor)
            began = time.monotonic()
            there = analysed(files, processor.DaskExecutor(client=client, status=False))
            took = time.monotonic() - began
    pairs = int(here["mass"].sum(flow=True))
    if not np.array_equal(here["mass"].values(flow=True), there["mass"].values(flow=True)):
        print("FAILED: the histograms differ")
        return 1
    if there["events"] != FILES * EVENTS or not pairs:
        print(f"FAILED: {there['events']} events and {pairs} pairs")
        return 1
    print(f"PROVEN: {there['events']} events of {FILES} files with {pairs} pairs, the same in {took:.1f} s")
    return 0


def _have_processor() -> None:
    """Workers warn of what this file has no use for, as this process would."""
    warnings.filterwarnings("ignore", message="Missing cross-reference")


if __name__ == "__main__":
    sys.exit(main())
