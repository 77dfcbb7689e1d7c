-- Cursors are of shards by name, keep why a projection stopped, and belong to tables of one version.
-- The tables of accounting are rebuilt from the log, as the schemas of the projections.

ALTER TABLE log.projection DROP CONSTRAINT projection_pkey;
ALTER TABLE log.projection ALTER shard TYPE text USING shard::text;
UPDATE log.projection p SET shard = s.name FROM log.shard s WHERE p.shard = s.id::text;
ALTER TABLE log.projection ADD PRIMARY KEY (name, version, shard), ADD error text;

CREATE TABLE log.projected (
    name    text    PRIMARY KEY,
    version integer NOT NULL
);

DROP SCHEMA IF EXISTS accounting CASCADE;
DELETE FROM log.projection WHERE name = 'accounting';
DELETE FROM log.migration WHERE component = 'accounting';
