"""Backtests: what queries, or a change of them, would have done over a history of rows."""
