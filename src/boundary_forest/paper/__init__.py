"""The paper, reproduced: each table, figure and claim is an item, run by one command.

An item is an :class:`~boundary_forest.paper.item.Item` in a file of ``items/``; adding one there is
all that is needed for ``boundary-forest paper list`` to know it. ``runner`` runs items and writes
what they found, ``page`` makes the one page of all. The paper is Mathy, Derbinsky, Bento, Rosenthal
and Yedidia, "The Boundary Forest Algorithm for Online Supervised and Unsupervised Learning", AAAI
2015.
"""
