"""Errors of Py4J, through which PySpark calls Java. Spark has no error classes of its own for some of them.

The package pyspark-client, for Spark Connect alone, has no Py4J and raises none of these errors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.util import is_remote_only

if TYPE_CHECKING or not is_remote_only():
    from py4j.protocol import Py4JError, Py4JJavaError
else:

    class Py4JError(Exception):
        """An error of the connection to Java."""

    class Py4JJavaError(Py4JError):
        """An exception that Java raised."""


__all__ = ["Py4JError", "Py4JJavaError"]
