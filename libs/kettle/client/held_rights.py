"""
What services say that we may do, as far as the token with which we come goes.

The bus tells a service who we are, and not with what we came: the iam that has let us in knows how far a token goes.
"""

import msgspec

from kettle.client.connections.credentials import Holder, asked, shown, token_of
from kettle.client.connections.pool_file import PoolFile
from kettle_wire.commands.rights import RightAt, Rights


def holder_of(pool: PoolFile) -> Holder:
    """
    Whom the pool takes us for by our token; it blocks until its iam has answered.

    Raises ClientError: there is no token, the pool does not take it, or its iam does not answer.
    """
    return asked(pool, token_of(pool))


def as_held(pool: PoolFile, rights: Rights) -> Rights:
    """
    What is left of what a service says to us who come with a token; it blocks, and raises, like `holder_of`.
    """
    return limited(rights, holder_of(pool), shown(pool.token))


def limited(rights: Rights, holder: Holder, place: str) -> Rights:
    """
    What is left of what a service says to the holder of a token; `place` is how a person is told where that is.
    """
    levels = [right.level for right in holder.levels]
    missing = f"the token of {place} is limited to {', '.join(levels) or 'nothing'}"

    def left(right: RightAt) -> RightAt:
        if not right.allowed or right.level in levels:
            return right
        return msgspec.structs.replace(right, allowed=False, missing=missing)

    return msgspec.structs.replace(rights, rights=[left(right) for right in rights.rights])
