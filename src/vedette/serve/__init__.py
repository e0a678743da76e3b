"""The HTTP service of `vedette serve`: sets and queries of a registry, matching and monitoring, without Spark."""
