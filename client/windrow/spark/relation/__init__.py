"""A table as a relation of a Spark session, which plans each scan of itself."""
