#!/usr/bin/env python3
# /// script
# requires-python = ">=3.10"
# dependencies = ["htmap==0.6.1", "click<8.1"]  # its command fails with a later click
# ///
"""HTMap: maps are submitted, followed in their event log, held, edited, released, run again and removed."""

import os
import subprocess
import sys

from proof import prove, until


def drive(options):
    """Drive an unmodified HTMap (delivery method "shared": the Python of this program runs the components)."""
    os.environ["HTMAP_DIR"] = os.path.abspath("htmap")
    os.environ["HTMAP_DELIVERY_METHOD"] = "shared"
    import htmap

    small = {"request_memory": "100MB", "request_disk": "50MB"}
    wait = options.timeout
    proven = []

    @htmap.mapped(map_options=htmap.MapOptions(**small))
    def double(x):
        print("doubling", x)
        return 2 * x

    doubles = double.map(range(4), tag="doubles")
    assert doubles.status().startswith("Map doubles (4 components): "), doubles.status()  # the log is there at once
    assert list(doubles.iter(timeout=wait)) == [0, 2, 4, 6]
    assert doubles.is_done and doubles.components_by_status()[htmap.ComponentStatus.COMPLETED] == (0, 1, 2, 3)
    assert "\ndoubling 3\n" in doubles.stdout.get(3, timeout=wait), doubles.stdout[3]
    assert len(doubles.runtime) == 4 and len(doubles.memory_usage) == 4
    proven.append("a map of four, its results, its output, its runtimes")

    doubles.rerun([1, 2])
    until("the rerun", lambda: doubles.is_done, wait)
    assert list(doubles.iter(timeout=wait)) == [0, 2, 4, 6]
    assert htmap.load("doubles").is_done
    proven.append("components run again")

    def fails(x):
        if x == 1:
            raise ValueError("one is bad")
        return x

    errors = htmap.map(fails, range(2), tag="errors", map_options=htmap.MapOptions(**small))
    until("an error", lambda: htmap.ComponentStatus.ERRORED in errors.component_statuses, wait)
    assert errors.get(0, timeout=wait) == 0
    assert "one is bad" in errors.get_err(1).report()
    try:
        errors.get(1, timeout=wait)
    except htmap.exceptions.MapComponentError:
        proven.append("an error of a component is told as one")

    never = htmap.map(fails, range(2), tag="never", map_options=htmap.MapOptions(**small, requirements="false"))
    never.hold()
    held = htmap.ComponentStatus.HELD
    until("the hold", lambda: never.components_by_status().get(held) == (0, 1), wait)
    assert "[1]" in never.hold_report() or "via" in never.hold_report(), never.hold_report()
    never.set_memory(77)
    [(memory, code)] = {(ad["RequestMemory"], ad["HoldReasonCode"]) for ad in _jobs('JobBatchName == "never"')}
    assert (memory, code) == (77, 1), (memory, code)
    never.release()
    until("the release", lambda: never.components_by_status().get(htmap.ComponentStatus.IDLE) == (0, 1), wait)
    proven.append("hold, edit, release")

    listed = subprocess.run(
        [sys.executable, "-m", "htmap", "status"], capture_output=True, text=True, check=True, timeout=options.timeout
    )
    assert all(tag in listed.stdout for tag in ("doubles", "errors", "never")), listed.stdout
    proven.append("the htmap command shows them")

    for each in (doubles, errors, never):
        each.remove()
    assert not htmap.get_tags()
    until("an empty queue", lambda: not _jobs("IsHTMapJob"), wait)
    proven.append("removed")
    return f"htmap {htmap.__version__}: " + "; ".join(proven)


def _jobs(constraint):
    import htcondor

    return htcondor.Schedd().query(constraint, ["RequestMemory", "HoldReasonCode"])


if __name__ == "__main__":
    prove(drive)
