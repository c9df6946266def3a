-- create_schema: the schema that `tallystick.schema` names, and in it the list of its migrations.
DO $$
BEGIN
  IF to_regnamespace(quote_ident(current_setting('tallystick.schema'))) IS NULL THEN
    EXECUTE format('CREATE SCHEMA %I', current_setting('tallystick.schema'));
  END IF;
  CREATE TABLE IF NOT EXISTS tallystick_migrations (
    version    BIGINT NOT NULL PRIMARY KEY,
    name       TEXT NOT NULL,
    applied_at TIMESTAMPTZ NOT NULL DEFAULT now()
  );
END $$
