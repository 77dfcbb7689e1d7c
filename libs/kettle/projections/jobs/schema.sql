-- The jobs of all queues: those in them, and what is left of those that were.

-- Every job in a queue.
CREATE TABLE live (
    shard        text        NOT NULL,
    cluster      integer     NOT NULL,
    proc         integer     NOT NULL,
    owner        text        NOT NULL,
    status       integer     NOT NULL,      -- HTCondor's JobStatus: 1 idle, 2 running, 3 removed, 4 completed, 5 held
    submitted_at timestamptz NOT NULL,
    entered_at   timestamptz NOT NULL,      -- this status, to the second
    attempts     integer     NOT NULL,      -- runs that were begun, the present one included
    slot         text,                      -- of the present attempt
    claim        text,                      -- its public id: see table claim
    assigned_at  timestamptz,               -- when the present attempt was begun, to the second
    executing_at timestamptz,               -- when its program was started, by the clock of the machine
    hold_reason  text,
    happened     bytea       NOT NULL,      -- what was recorded of it since the submission, for the fold
    PRIMARY KEY (shard, cluster, proc)
) WITH (fillfactor = 70);                   -- no index has what changes: rows are rewritten in place

-- Clusters of which a job is in a queue, or is to come.
CREATE TABLE cluster (
    shard        text        NOT NULL,
    cluster      integer     NOT NULL,
    owner        text        NOT NULL,
    submitted_at timestamptz NOT NULL,
    jobs         integer     NOT NULL,      -- that have come into the queue, or never will
    event        bytea       NOT NULL,      -- msgpack of the submission
    PRIMARY KEY (shard, cluster)
);

-- Jobs that have left their queue. The columns behind `frame` are attributes of the ad where these are whole numbers
-- or reals; NULL if the ad has none, or `search` says null.
CREATE TABLE history (
    shard        text        NOT NULL,
    cluster      integer     NOT NULL,
    proc         integer     NOT NULL,
    owner        text        NOT NULL,
    status       integer     NOT NULL,      -- 3 removed, 4 completed
    submitted_at timestamptz NOT NULL,
    left_at      timestamptz NOT NULL,
    frame        bigint      NOT NULL,      -- that in which it left
    exit_code    bigint,                    -- ExitCode
    wall_time    double precision,          -- RemoteWallClockTime: seconds, all attempts
    memory       bigint,                    -- MemoryUsage: MiB, peak
    queued       bigint,                    -- QDate: seconds since the epoch
    started      bigint,                    -- JobStartDate: seconds since the epoch, first attempt
    completed    bigint,                    -- CompletionDate: seconds since the epoch, 0 if it did not complete
    search       jsonb       NOT NULL,      -- all other attributes by lower-case name: numbers (false 0, true 1), text
                                            -- in lower case; null: what only the ad can tell, such as an expression
    ad           bytea       NOT NULL,      -- the whole ad, msgpack
    PRIMARY KEY (shard, cluster, proc)
) WITH (toast_tuple_target = 8160);         -- to compress each row would cost more than to write it

-- What the attempts of an owner's jobs that ended have used; times in microseconds: a sum does not depend on its order.
CREATE TABLE usage (
    shard          text   NOT NULL,
    owner          text   NOT NULL,
    jobs_completed bigint NOT NULL,
    attempts       bigint NOT NULL,
    wall           bigint NOT NULL,
    slot_time      bigint NOT NULL,         -- wall-clock time times cores
    cpu            bigint NOT NULL,         -- user and system
    PRIMARY KEY (shard, owner)
);

-- All ended attempts, which are never deleted; times in microseconds. A running attempt is only in `live`.
CREATE TABLE attempt (
    shard      text        NOT NULL,
    cluster    integer     NOT NULL,
    proc       integer     NOT NULL,
    attempt    integer     NOT NULL,        -- counts the runs of the job from 1
    owner      text        NOT NULL,
    acct_group text        NOT NULL,        -- AcctGroup; empty: none
    project    text        NOT NULL,        -- ProjectName; empty: none
    machine    text        NOT NULL,
    slot       text        NOT NULL,
    begun_at   timestamptz NOT NULL,        -- when it was assigned
    ended_at   timestamptz NOT NULL,        -- when its end was recorded
    until_at   timestamptz NOT NULL,        -- the later of ended_at and begun_at + wall
    wall       bigint      NOT NULL,        -- as its machine measured
    slot_time  bigint      NOT NULL,        -- wall-clock time times cores
    cpu        bigint      NOT NULL,        -- user and system
    good       bigint      NOT NULL,        -- of wall: not lost; up to the last checkpoint if its program did not end
    uncharged  bigint      NOT NULL,        -- from begun_at to ended_at beyond wall, times cores
    completed  boolean     NOT NULL,        -- it was the last one of a job that ran to its end
    code       integer     NOT NULL,        -- why it ended early, VacateReasonCode or HoldReasonCode; 0: its program ended
    frame      bigint      NOT NULL,        -- that in which its end was recorded
    PRIMARY KEY (shard, cluster, proc, attempt)
);

-- How many jobs each owner has in a queue.
CREATE TABLE depth (
    shard   text    NOT NULL,
    owner   text    NOT NULL,
    idle    integer NOT NULL,
    running integer NOT NULL,
    removed integer NOT NULL,               -- to be removed when their attempt has ended
    held    integer NOT NULL,
    PRIMARY KEY (shard, owner)
) WITH (fillfactor = 50);

-- How many they were at the end of each minute in which that changed, for 90 days.
CREATE TABLE depth_by_minute (
    shard   text        NOT NULL,
    owner   text        NOT NULL,
    minute  timestamptz NOT NULL,
    idle    integer     NOT NULL,
    running integer     NOT NULL,
    removed integer     NOT NULL,
    held    integer     NOT NULL,
    PRIMARY KEY (shard, owner, minute)
) WITH (fillfactor = 70);

-- Claims of slots, those that ended for 90 days.
CREATE TABLE claim (
    shard       text        NOT NULL,
    claim       text        NOT NULL,       -- public id
    startd      text        NOT NULL,
    slot        text        NOT NULL,
    submitter   text        NOT NULL,
    autocluster bigint      NOT NULL,       -- what it was requested for
    lease       double precision NOT NULL,  -- seconds
    granted_at  timestamptz NOT NULL,
    ended_at    timestamptz,                -- NULL: it is held
    reason      text,                       -- why it ended
    PRIMARY KEY (shard, claim)
);
