"""
File transfer of jobs: input and output files, the transfer queue, the object store, signed URLs and streamed output.
"""
