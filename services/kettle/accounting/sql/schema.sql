-- What accounting keeps, version 1: the past of jobs, and of the present only what the past will need.

CREATE SCHEMA IF NOT EXISTS accounting;

-- Jobs that have left the queue.
CREATE TABLE IF NOT EXISTS accounting.history_1 (
    shard        text    NOT NULL,
    cluster      integer NOT NULL,
    proc         integer NOT NULL,
    owner        text    NOT NULL,
    status       integer NOT NULL,      -- HTCondor's JobStatus: 3 removed, 4 completed
    submitted_at timestamptz NOT NULL,
    left_at      timestamptz NOT NULL,
    frame        bigint  NOT NULL,      -- that in which it left
    ad           bytea   NOT NULL,      -- msgpack
    PRIMARY KEY (shard, cluster, proc)
);

CREATE INDEX IF NOT EXISTS history_1_newest ON accounting.history_1 (left_at DESC, cluster DESC, proc DESC);
CREATE INDEX IF NOT EXISTS history_1_owner ON accounting.history_1 (owner, left_at DESC);
CREATE INDEX IF NOT EXISTS history_1_cluster ON accounting.history_1 (cluster, proc);

-- Sums over all attempts that ended; times in microseconds, so that a sum does not depend on its order.
CREATE TABLE IF NOT EXISTS accounting.usage_1 (
    shard          text   NOT NULL,
    owner          text   NOT NULL,
    jobs_completed bigint NOT NULL,
    attempts       bigint NOT NULL,
    wall           bigint NOT NULL,
    slot_time      bigint NOT NULL,     -- wall-clock time times cores
    cpu            bigint NOT NULL,
    PRIMARY KEY (shard, owner)
);

-- Clusters of which a job is still in the queue.
CREATE TABLE IF NOT EXISTS accounting.cluster_1 (
    shard   text    NOT NULL,
    cluster integer NOT NULL,
    at      bigint  NOT NULL,           -- microseconds since the epoch
    live    integer NOT NULL,           -- jobs in the queue
    event   bytea   NOT NULL,           -- msgpack of the submission
    PRIMARY KEY (shard, cluster)
);

-- What happened to jobs in the queue: pairs of time and event, msgpack one after the other.
CREATE TABLE IF NOT EXISTS accounting.job_1 (
    shard    text    NOT NULL,
    cluster  integer NOT NULL,
    proc     integer NOT NULL,
    happened bytea   NOT NULL,
    PRIMARY KEY (shard, cluster, proc)
) WITH (fillfactor = 70);
