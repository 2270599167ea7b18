"""Reproduce the paper: each table, figure and claim is an item, run by one command.

An item is an :class:`~paper.item.Item` in a file of ``items/``; adding one there is all it takes
for ``python -m paper list`` to show it. ``runner`` runs items and writes their
results, ``page`` makes one page of all of them. The paper is Mathy, Derbinsky, Bento, Rosenthal
and Yedidia, "The Boundary Forest Algorithm for Online Supervised and Unsupervised Learning", AAAI
2015.
"""
