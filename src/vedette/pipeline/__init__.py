"""Pipelines as files: what a pipeline.toml may say, read and checked without Spark. `vedette.spark` runs them."""
