-- places_of_postgres: take out the key and the guards of places, for mutants of what stands before them.
DROP TRIGGER IF EXISTS steps_placed ON steps;
DROP TRIGGER IF EXISTS events_place ON events;
DROP INDEX IF EXISTS steps_places;
