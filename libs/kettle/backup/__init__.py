"""
Backups of a pool: its database, its keys and settings, and the files of its queue, as they were at one frame of each shard.

    backup/
        manifest.json        what is in it, with the sum of every part; written last
        database.dump        of PostgreSQL's own form, from one snapshot
        files.tar            what the queue has on disk: spooled files, checkpoints, archived events
        files-later.tar      what of these came while the database was read
        secrets.tar          keys, certificates and settings; or secrets.sealed, which a passphrase opens

What follows from these is not in it: JetStream is filled again from the log, and machines send their ads again.
"""

from kettle.backup.creating import Source, create
from kettle.backup.errors import BackupError, BusAheadOfBackupError
from kettle.backup.manifest import Manifest, Setting, ShardHead
from kettle.backup.restoring import Target, restore
from kettle.backup.verifying import Verification, verify

__all__ = [
    "BackupError",
    "BusAheadOfBackupError",
    "Manifest",
    "Setting",
    "ShardHead",
    "Source",
    "Target",
    "Verification",
    "create",
    "restore",
    "verify",
]
