-- The event log, as it is after every migration in migrations/.
-- PostgreSQL 14 or later; no extension is needed.

CREATE SCHEMA IF NOT EXISTS log;

-- One row per shard. Its epoch fences: who writes must name the epoch, head and frame that stand here.
CREATE TABLE log.shard (
    id    integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name  text    NOT NULL UNIQUE,
    kind  text    NOT NULL,             -- the name up to the first character that is no letter
    epoch integer NOT NULL,             -- raised by every change of the owner
    head  bigint  NOT NULL DEFAULT 0,   -- position of the last event
    frame bigint  NOT NULL DEFAULT 0,   -- number of the last frame
    owner text    NOT NULL,
    -- how many positions a piece of its events holds; never changed
    piece_events bigint NOT NULL DEFAULT 16777216 CHECK (piece_events > 1)
);

-- Every event. The owner numbers positions and frames without gaps, and frames rise with positions: that the primary
-- key begins with the frame makes reading on from a frame one range of one index, in the order of positions.
-- That (stream, ver) is unique follows from the one writer; `kettle log check` proves it.
CREATE TABLE log.event (
    shard  integer     NOT NULL,
    frame  bigint      NOT NULL,
    pos    bigint      NOT NULL,
    epoch  integer     NOT NULL,
    ver    integer     NOT NULL,
    at     timestamptz NOT NULL,        -- when the owner closed the frame, to the microsecond
    stream text        NOT NULL,
    type   text        NOT NULL,        -- the tag inside `data`, for SQL readers
    data   bytea       NOT NULL,        -- msgpack
    meta   bytea       NOT NULL,
    PRIMARY KEY (shard, frame, pos)
) PARTITION BY LIST (shard);

CREATE INDEX event_stream ON log.event (shard, stream, ver);

-- First answers by command id: a command that comes again is not carried out again.
CREATE TABLE log.command (
    shard integer     NOT NULL,
    id    text        NOT NULL,
    frame bigint      NOT NULL,
    at    timestamptz NOT NULL,
    reply bytea       NOT NULL,
    PRIMARY KEY (shard, id)
);

CREATE INDEX command_age ON log.command (shard, frame);

-- How far each projection has come in each shard, which may be one of another database: hence the name. `epoch` is that
-- of the only owner who may move the cursor, 0 where any instance of the projection may.
CREATE TABLE log.projection (
    name    text    NOT NULL,
    version integer NOT NULL,
    shard   text    NOT NULL,
    frame   bigint  NOT NULL DEFAULT 0,
    epoch   integer NOT NULL DEFAULT 0,
    error   text,                       -- why it stopped at this frame; NULL: it did not
    PRIMARY KEY (name, version, shard)
);

-- Which version of a projection's tables the schema of its name holds.
CREATE TABLE log.projected (
    name    text    PRIMARY KEY,
    version integer NOT NULL
);

-- The live streams of each shard, folded up to the cursor of the projection `working_set`.
CREATE TABLE log.working_set (
    shard  integer NOT NULL,
    stream text    NOT NULL,
    ver    integer NOT NULL,
    state  bytea   NOT NULL,
    PRIMARY KEY (shard, stream)
) WITH (fillfactor = 70);  -- rows are rewritten in place all the time

-- The pieces of events that are in files alone: an event is in log.event or in a piece that is named here, never in both,
-- because one transaction drops the one and adds the other. Always the oldest ones, without a gap.
CREATE TABLE log.archive (
    shard          integer     NOT NULL,
    piece          bigint      NOT NULL,
    first_pos      bigint      NOT NULL,
    last_pos       bigint      NOT NULL,
    first_frame    bigint      NOT NULL,
    last_frame     bigint      NOT NULL,
    first_at       timestamptz NOT NULL,
    last_at        timestamptz NOT NULL,
    rows_sha256    text        NOT NULL,  -- of the msgpack of every row, in order
    events_file    text        NOT NULL,  -- below the archive directory
    events_bytes   bigint      NOT NULL,
    events_sha256  text        NOT NULL,
    streams_file   text        NOT NULL,  -- which stream is where in the other one
    streams_bytes  bigint      NOT NULL,
    streams_sha256 text        NOT NULL,
    archived_at    timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (shard, piece)
);

-- A piece of a shard's events is a table of its own, so that retention drops whole tables. Pieces are built beside the
-- log and then attached, which does not wait for readers or writers of other shards.
-- Owners of shards make no tables themselves: they get those that the next frame can need.
CREATE FUNCTION log.make_piece(the_shard integer, piece bigint) RETURNS void LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    events text := format('event_%s', the_shard);
    part   text := format('event_%s_%s', the_shard, piece);
    size   bigint;
    newest bigint;
BEGIN
    IF to_regclass('log.' || part) IS NOT NULL THEN
        RETURN;
    END IF;
    -- A frame has at most 2^22 events.
    SELECT piece_events, (head + 4194304) / piece_events + 1 INTO STRICT size, newest FROM log.shard WHERE id = the_shard;
    IF piece < 0 OR piece > newest THEN
        RAISE EXCEPTION 'shard % has no position near piece %', the_shard, piece;
    END IF;
    PERFORM pg_advisory_xact_lock(hashtext('kettle.log.make_piece'));
    IF to_regclass('log.' || events) IS NULL THEN
        EXECUTE format('CREATE TABLE log.%I (LIKE log.event) PARTITION BY RANGE (pos)', events);
        EXECUTE format('ALTER TABLE log.event ATTACH PARTITION log.%I FOR VALUES IN (%s)', events, the_shard);
    END IF;
    IF to_regclass('log.' || part) IS NULL THEN
        EXECUTE format('CREATE TABLE log.%I (LIKE log.event)', part);
        EXECUTE format('ALTER TABLE log.%I ATTACH PARTITION log.%I FOR VALUES FROM (%s) TO (%s)',
                       events, part, piece * size, (piece + 1) * size);
    END IF;
END $$;

-- Waits until nobody reads or writes the shard; a reader who comes later sees what the caller committed with it.
-- Only what the archive has is dropped.
CREATE FUNCTION log.drop_piece(the_shard integer, the_piece bigint) RETURNS void LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    events text := format('event_%s', the_shard);
    part   text := format('event_%s_%s', the_shard, the_piece);
BEGIN
    IF NOT EXISTS (SELECT FROM log.archive a WHERE a.shard = the_shard AND a.piece = the_piece) THEN
        RAISE EXCEPTION 'the archive has no piece % of shard %', the_piece, the_shard;
    END IF;
    PERFORM pg_advisory_xact_lock(hashtext('kettle.log.make_piece'));
    EXECUTE format('ALTER TABLE log.%I DETACH PARTITION log.%I', events, part);
    EXECUTE format('DROP TABLE log.%I', part);
END $$;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA log FROM PUBLIC;
