#!/usr/bin/env python3
# /// script
# requires-python = ">=3.11"
# dependencies = ["setuptools", "wheel", "swig", "boto3>=1.35", "cachetools", "certifi", "diraccfg", "DIRACCommon==9.1.22", "packaging", "psutil", "pyasn1", "pyasn1-modules", "pydantic", "pyparsing", "python-dateutil", "pytz", "requests", "sqlalchemy", "typing_extensions", "Authlib", "pyjwt", "pexpect", "importlib_metadata", "importlib_resources", "dominate", "zstandard", "diracx-client", "diracx-core", "diracx-cli", "db12"]
# alone = ["M2Crypto>=0.50", "dirac==9.1.22"]
# ///
"""Drive DIRAC's `HTCondorCEComputingElement`, unmodified: pilots are submitted, asked for, killed, and their output is fetched.

DIRAC_CE names the entrypoint, as `-name` and before the port of `-pool`; DIRAC_TOKEN is a file with the token that is shown.
"""

import os

from proof import prove, until

PILOT = """\
#!/bin/sh
echo "stamp $DIRAC_PILOT_STAMP"
echo "a word of the pilot" >&2
"""


def drive(options):
    """DIRAC's way to submit pilots to an HTCondor-CE."""
    from DIRAC.ConfigurationSystem.Client.ConfigurationData import gConfigurationData

    gConfigurationData.setOptionInCFG("/Resources/Computing/CEDefaults/HTCondorCE/WorkingDirectory", os.getcwd())
    from DIRAC.Resources.Computing.HTCondorCEComputingElement import HTCondorCEComputingElement

    ce = HTCondorCEComputingElement(os.environ["DIRAC_CE"])
    assert os.getcwd() == ce.workingDirectory, ce.workingDirectory
    ce.setParameters({"Queue": "condor", "UseLocalSchedd": "False", "ExtraSubmitString": "+maxWallTime = 10"})
    with open(os.environ["DIRAC_TOKEN"]) as file:
        ce.setToken({"access_token": file.read().strip()})

    jobs, stamps = submitted(ce, "exit 0", 3)
    seen = followed(ce, jobs, {"Done"}, options.timeout)
    assert seen <= {"Waiting", "Running", "Done"}, seen
    for job in jobs:
        out, err = value(ce.getJobOutput(f"{job}:::{stamps[job]}"))
        assert (out, err) == (f"stamp {stamps[job]}\n", "a word of the pilot\n"), (out, err)

    bad, _ = submitted(ce, "exit 3", 1)
    followed(ce, bad, {"Aborted", "Failed"}, options.timeout)  # held by its own on_exit_hold

    long, _ = submitted(ce, "sleep 600", 2)
    followed(ce, long, {"Running"}, options.timeout)
    assert ce.killJob(long)["OK"]
    followed(ce, long, {"Aborted", "Unknown"}, options.timeout)
    return f"{len(jobs)} pilots and their output, one that failed, two that were killed; seen as {sorted(seen)}"


def submitted(ce, last, count):
    """Pilots that end with a command, and their stamps."""
    with open("pilot.sh", "w") as file:
        file.write(PILOT + last + "\n")
    result = ce.submitJob(os.path.abspath("pilot.sh"), None, count)
    jobs = value(result)
    assert count == len(jobs) == len(result["PilotStampDict"]), result
    return jobs, result["PilotStampDict"]


def followed(ce, jobs, wanted, timeout):
    """Wait until all are in one of these states; the states that were seen."""
    seen = set()

    def so():
        said = value(ce.getJobStatus(list(jobs)))
        seen.update(said.values())
        return set(said) == set(jobs) and set(said.values()) <= wanted

    try:
        until(f"{jobs} being {wanted}", so, timeout, pause=0.5)
    except TimeoutError as error:
        raise TimeoutError(f"{error}; they were {value(ce.getJobStatus(list(jobs)))}, and before that {seen}") from None
    return seen


def value(result):
    """What DIRAC returns, or its complaint."""
    assert result["OK"], result["Message"]
    return result["Value"]


if __name__ == "__main__":
    prove(drive, needed=("condor_submit", "condor_q", "condor_history", "condor_rm", "condor_transfer_data"))
