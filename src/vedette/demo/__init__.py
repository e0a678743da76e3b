"""The demo of `vedette demo`: its made-up market, its work in Spark, and its report."""
