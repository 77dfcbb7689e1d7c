-- Machines, as the collector saw them come and go.

-- Every machine that was ever in the pool, as it is now.
CREATE TABLE machine (
    shard     text        NOT NULL,
    machine   text        NOT NULL,
    present   boolean     NOT NULL,
    since     timestamptz NOT NULL,     -- when it came, or left if it is not present
    cpus      integer     NOT NULL,
    memory    bigint      NOT NULL,     -- MiB
    joined    integer     NOT NULL,     -- how often it came
    reason    text,                     -- why it left: drained or expired; NULL while it is present
    PRIMARY KEY (shard, machine)
);

-- Every time that a machine came or left.
CREATE TABLE passage (
    shard   text        NOT NULL,
    pos     bigint      NOT NULL,       -- of the event
    at      timestamptz NOT NULL,
    machine text        NOT NULL,
    came    boolean     NOT NULL,
    reason  text,                       -- why it left
    PRIMARY KEY (shard, pos)
);
