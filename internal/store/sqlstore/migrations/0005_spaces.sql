-- Namespaces may say where their tables go: in objects.location, as tables do, but any number of them may name one place, and tables lie
-- inside. A table may not lie at such a place or around it.
CREATE INDEX objects_spaces ON objects (location) WHERE kind = 1 AND location IS NOT NULL;
