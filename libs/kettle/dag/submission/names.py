"""The files beside a DAG file, by their names."""

import posixpath

import msgspec

from kettle.dag.submission.options import SubmitDagOptions

SUBMIT_FILE_SUFFIX = ".condor.sub"


class FileNames(msgspec.Struct, frozen=True):
    """What is written for one submission, relative to its directory."""

    submit_file: str
    debug_log: str
    lib_out: str
    lib_err: str
    job_log: str
    lock_file: str

    @property
    def own(self) -> tuple[str, ...]:
        """What an earlier submission of the same DAG would have left, and what is not overwritten unasked."""
        return (self.submit_file, self.lib_out, self.lib_err, self.job_log)


def file_names(options: SubmitDagOptions) -> FileNames:
    """The names of the files of a submission."""
    primary = options.primary
    debug = (
        posixpath.join(options.outfile_dir, posixpath.basename(primary)) if options.outfile_dir else primary
    )
    return FileNames(
        submit_file=primary + SUBMIT_FILE_SUFFIX,
        debug_log=f"{debug}.dagman.out",
        lib_out=f"{primary}.lib.out",
        lib_err=f"{primary}.lib.err",
        job_log=f"{primary}.dagman.log",
        lock_file=options.lock_file or f"{primary}.lock",
    )
