"""The demo of `vedette demo`: its generated market, its Spark streams, and its report."""
