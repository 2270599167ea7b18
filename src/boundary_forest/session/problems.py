"""The error that users see as one line."""


class StreamError(Exception):
    """A session or a source cannot start or cannot continue: why, and what to do."""
