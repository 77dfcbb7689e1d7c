"""
What a machine is able to do because it runs Kettle: for its own ad, and for ads of machines that nobody has seen yet.
"""

from typing import Final

from kettle_wire.ads import Ad

ALWAYS: Final[Ad] = {
    "HasFileTransfer": True,
    "HasJobDeferral": True,
    "HasJobTransferPlugins": True,
    "HasSelfCheckpointTransfers": True,
}
"""What each machine can do, however it is configured."""

UNLESS_TOLD: Final[Ad] = {
    **ALWAYS,
    "HasFileTransferPluginMethods": "dav,davs,file,gs,http,https,s3",
    "HasPerFileEncryption": True,
}
"""
What a machine can do whose owner has left its settings alone, with no other program installed: XRootD's methods need some.
"""
