"""Seeded data to try things on: the same seed makes the same rows and queries."""
