"""The interface of compute entrypoints, `/ce/v1`: what it has beside `/v2` and shares with it."""
