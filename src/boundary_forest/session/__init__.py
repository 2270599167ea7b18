"""Learning from a stream of rows, as the command line does it.

``sources.py`` reads rows in batches, ``columns.py`` says what they mean, ``model.py`` is the forest
with that knowledge, and ``run.py`` answers and learns; ``progress.py`` is what there is to show.
"""
