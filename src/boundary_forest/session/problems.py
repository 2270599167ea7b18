"""What ends a stream with one line to the user."""


class StreamError(Exception):
    """The stream cannot begin, or cannot go on: why, and what to do."""
