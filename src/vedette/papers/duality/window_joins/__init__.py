"""Joins of two windows as Lim et al. have them: SJ-Join and IBS-JS."""
