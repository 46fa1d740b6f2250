"""Algebra: the square systems of a model and all their roots."""
