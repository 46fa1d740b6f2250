"""Errors: what is wrong with data, in one sentence that names the place and the remedy."""


class DataError(ValueError):
    """Data that cannot be used; the message says what was given and what to do."""
