-- Pieces of a shard's events may have another size than 2^24 positions, and old ones move to an archive of files.

ALTER TABLE log.shard ADD COLUMN piece_events bigint NOT NULL DEFAULT 16777216 CHECK (piece_events > 1);

CREATE TABLE log.archive (
    shard          integer     NOT NULL,
    piece          bigint      NOT NULL,
    first_pos      bigint      NOT NULL,
    last_pos       bigint      NOT NULL,
    first_frame    bigint      NOT NULL,
    last_frame     bigint      NOT NULL,
    first_at       timestamptz NOT NULL,
    last_at        timestamptz NOT NULL,
    rows_sha256    text        NOT NULL,
    events_file    text        NOT NULL,
    events_bytes   bigint      NOT NULL,
    events_sha256  text        NOT NULL,
    streams_file   text        NOT NULL,
    streams_bytes  bigint      NOT NULL,
    streams_sha256 text        NOT NULL,
    archived_at    timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (shard, piece)
);

CREATE OR REPLACE FUNCTION log.make_piece(the_shard integer, piece bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    events text := format('event_%s', the_shard);
    part   text := format('event_%s_%s', the_shard, piece);
    size   bigint;
BEGIN
    IF to_regclass('log.' || part) IS NOT NULL THEN
        RETURN;
    END IF;
    SELECT piece_events INTO STRICT size FROM log.shard WHERE id = the_shard;
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

CREATE FUNCTION log.drop_piece(the_shard integer, piece bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    events text := format('event_%s', the_shard);
    part   text := format('event_%s_%s', the_shard, piece);
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('kettle.log.make_piece'));
    EXECUTE format('ALTER TABLE log.%I DETACH PARTITION log.%I', events, part);
    EXECUTE format('DROP TABLE log.%I', part);
END $$;
