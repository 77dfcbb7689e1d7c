"""What the demonstration of a facility showed."""

import msgspec


class FacilityFigures(msgspec.Struct, kw_only=True):
    """Times in seconds; -1: what was to be counted is not part of this run."""

    parts: int
    rows: int = 0
    missing: list[str] = []
    """Which parts of a facility were left out, and what would have to be there for them."""
    login: bool = False
    """Somebody has signed in at an issuer and got a server from JupyterHub, whose notebook made the analysis."""
    server: float = 0.0
    """From the wish for that server to its readiness."""
    kernel: float = 0.0
    """From that wish to the end of the first cell of its notebook."""
    started: float = 0.0
    """From the wish for a cluster to the last of its workers."""
    took: float = 0.0
    """The analysis."""
    equal: bool = False
    """The histogram is the one that was made without any cluster."""
    behind: int = -1
    """Workers on a machine that nothing reaches."""
    cached: int = -1
    """Files that the cache of the site has got from the origin."""
    left: int = -1
    """Jobs in the end."""
    clean: bool = False

    @property
    def right(self) -> bool:
        """Whether everything is as it must be."""
        return (
            self.equal
            and self.left == 0
            and self.clean
            and self.behind != 0
            and self.cached in {-1, self.parts}
        )
