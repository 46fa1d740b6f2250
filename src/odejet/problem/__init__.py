"""Problem: a model and data as one question, with its unknowns and its likelihood."""
