-- Tables of pieces are made and dropped with the rights of the owner of the log, for roles that may do nothing of the kind.

CREATE OR REPLACE FUNCTION log.make_piece(the_shard integer, piece bigint) RETURNS void LANGUAGE plpgsql
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

DROP FUNCTION log.drop_piece(integer, bigint);
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
