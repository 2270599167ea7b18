"""The report of a session: one page of HTML that needs nothing else, and makes no request.

Each section has a module that works out what it shows, as plain values, and a template of the same
name in ``templates/`` that writes it as HTML; ``page.py`` puts them together.
``charts.py`` draws curves, ``formatting.py`` writes figures. The templates are
Jinja2's with autoescape: whatever comes from the data is escaped. Plots are SVG stretched to the
page, with their text beside it as HTML, so that it is as legible on a phone as on paper.
``page.js`` adds the values under the pointer; without it only those are missing.
"""

from boundary_forest.report.page import page, write_report

__all__ = ["page", "write_report"]
