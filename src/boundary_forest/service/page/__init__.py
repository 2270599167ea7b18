"""The live page of a service, at ``/``.

``routes.py`` has its paths: files, login, events and the inspector. ``sessions.py`` knows who has
logged in. ``events.py`` sends what is new to all open pages; ``view.py`` is what they show, made of
the recorder's moments with the charts of the report; ``inspector.py`` draws the explanation of a
row. The page's own files are in ``templates/``; its style and charts are the report's.
"""

from boundary_forest.service.page.routes import LivePage

__all__ = ["LivePage"]
