"""Settings of the documentation site; contributing.md says how to build it."""

import os
import re
from pathlib import Path

from sphinx_gallery.sorting import ExplicitOrder

from autokernel import __version__

GALLERY = Path(__file__).parent / "gallery"
ORDER = [
    "airline", "forecast", "mauna_loa", "concrete", "solar_window", "shops", "states", "rentals",
    "outliers", "calibration", "comparison", "grid_search", "own_kernel", "resume", "dask",
    "many_rows",
]  # fmt: skip
DATA = "AUTOKERNEL_DATA"  # the folder of data that do not come with the package


def is_executed(example: Path) -> bool:
    """Whether the data of an example are there, as a build downloads nothing."""
    text = example.read_text("utf-8")
    return DATA in os.environ or DATA not in text


executed = [re.escape(path.name) for path in GALLERY.glob("plot_*.py") if is_executed(path)]

project = "autokernel"
author = "The autokernel developers"
copyright = author  # noqa: A001 - the name is Sphinx's
version = release = __version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "gallery", "**/sg_execution_times.rst", "sg_execution_times.rst"]
templates_path = ["_templates"]

# A reference of ours that leads nowhere is a warning, and CI turns warnings into errors.
nitpicky = True
nitpick_ignore_regex = [("py:.*", r"(?!autokernel).*")]  # of others: a build needs no network

# Markdown
myst_enable_extensions = ["colon_fence", "deflist", "attrs_inline"]
myst_heading_anchors = 4  # links to #headings, as on GitHub
myst_links_external_new_tab = False

# API reference
autosummary_generate = True
autodoc_typehints = "none"  # numpydoc has the types
autodoc_member_order = "bysource"
numpydoc_show_class_members = False  # the templates list the members
numpydoc_xref_param_type = False

# Gallery: a failing example fails the build
sphinx_gallery_conf = {
    "examples_dirs": ["gallery"],
    "gallery_dirs": ["auto_gallery"],
    "filename_pattern": "|".join(executed) or "(?!)",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "within_subsection_order": ExplicitOrder([f"plot_{name}.py" for name in ORDER]),
    "doc_module": ("autokernel",),
    "backreferences_dir": None,
}

toc_object_entries_show_parents = "hide"  # predict() and not AutoKernelGPRegressor.predict()

html_theme = "pydata_sphinx_theme"
html_title = "autokernel"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_sidebars = {page: [] for page in ("index", "quickstart", "how-to-choose", "faq")}  # no section
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "navigation_with_keys": False,
    "show_prev_next": True,
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
}
