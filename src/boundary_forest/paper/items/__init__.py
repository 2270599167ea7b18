"""One file an item, or a few related ones; each file has a tuple ``ITEMS``."""
