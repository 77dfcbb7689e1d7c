-- What negotiation gave and refused, for 30 days.

-- Cycles. One that gives nothing and refuses what the last one refused is not recorded.
CREATE TABLE cycle (
    shard    text        NOT NULL,
    cycle    bigint      NOT NULL,
    at       timestamptz NOT NULL,      -- when it was recorded
    started  double precision NOT NULL, -- seconds since the epoch, by the negotiator's clock
    duration double precision NOT NULL, -- seconds of matchmaking
    slots    integer     NOT NULL,      -- that were considered
    idle     integer     NOT NULL,      -- jobs that asked
    matched  integer     NOT NULL,      -- jobs that got a slot
    rejected integer     NOT NULL,      -- jobs that got none
    PRIMARY KEY (shard, cycle)
);

-- What was given: so many jobs of an autocluster may go to a slot.
CREATE TABLE match (
    shard       text    NOT NULL,
    cycle       bigint  NOT NULL,
    number      integer NOT NULL,       -- from 0, in the order of matching
    submitter   text    NOT NULL,
    schedd      text    NOT NULL,
    autocluster bigint  NOT NULL,
    slot        text    NOT NULL,
    startd      text    NOT NULL,
    count       integer NOT NULL,
    PRIMARY KEY (shard, cycle, number)
);

-- What was refused, and why.
CREATE TABLE rejection (
    shard       text    NOT NULL,
    cycle       bigint  NOT NULL,
    number      integer NOT NULL,       -- from 0
    submitter   text    NOT NULL,
    schedd      text    NOT NULL,
    autocluster bigint  NOT NULL,
    count       integer NOT NULL,
    reason      text    NOT NULL,
    slots       integer NOT NULL,       -- that were considered
    clauses     jsonb   NOT NULL,       -- [{side, text, refuses}]: parts of Requirements and how many slots each refuses
    PRIMARY KEY (shard, cycle, number)
);
