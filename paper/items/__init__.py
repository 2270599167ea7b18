"""The items of the paper: one or a few related ones in each file, in its tuple ``ITEMS``."""
