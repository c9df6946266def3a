-- schema_version: how far the migrations of this schema have come.
SELECT coalesce(max(version), 0) FROM tallystick_migrations
