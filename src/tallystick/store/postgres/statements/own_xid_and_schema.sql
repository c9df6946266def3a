-- own_xid_and_schema: the number of this transaction and its server, as `own_xid` gives them; and how far the migrations of
-- this schema have come, which a newer version may have changed since this process opened it.
SELECT @part(own_number), (SELECT coalesce(max(version), 0) FROM tallystick_migrations)
