"""Pipeline files: their keys, read and validated without Spark. `vedette.run` runs them."""
