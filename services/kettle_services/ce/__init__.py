"""The compute entrypoint: routes foreign jobs to this pool or to a batch system, and looks after them there."""
