"""The report of a stream: one page of HTML that needs nothing else, and asks nothing of the net.

``page.py`` puts the sections together, ``markup.py`` escapes all that comes from the data, and each
other file draws one kind of section. Plots are SVG stretched to the page, with their text beside
it as HTML, so that it is as legible on a telephone as on paper. ``page.js`` adds the values under
the pointer; without it nothing but they is missing.
"""

from boundary_forest.session.report.page import page, write_report

__all__ = ["page", "write_report"]
