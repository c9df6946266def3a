"""How Sphinx builds the documentation site, after scripts/build_site.py has put its pages together."""

from __future__ import annotations

from tallystick import __version__

project = "Tallystick"
author = "the authors of Tallystick"
release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
html_theme = "furo"
html_title = f"Tallystick {__version__}"
# No page asks another host for anything: fonts, scripts and the search are part of the site.
html_copy_source = False
html_show_sourcelink = False
myst_heading_anchors = 4
# A text between single backticks in a docstring is code, as it is everywhere else in this project.
default_role = "code"
autodoc_member_order = "bysource"
autodoc_class_signature = "separated"
autodoc_default_options = {"exclude-members": "__init__, __new__"}
# Diagrams are told in text too, and the lexer does not know every part of our SQL.
suppress_warnings = ["misc.highlighting_failure"]
