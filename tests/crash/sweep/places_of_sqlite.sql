-- places_of_sqlite: take out the key and the guards of places, for mutants of what stands before them.
DROP TRIGGER IF EXISTS steps_placed;
DROP TRIGGER IF EXISTS events_place;
DROP INDEX IF EXISTS steps_places;
