"""Decide: how much is tried, and when it is enough."""
