"""Settings of the site: `make docs` builds it, and warnings are errors."""

import os
import sys
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # the examples give the same numbers on every machine of a kind
DOCS = Path(__file__).parent
sys.path[:0] = [str(DOCS / "_ext"), str(DOCS.parent / "src")]  # the code beside these pages, whatever is installed

from site_pages import GALLERY_SECTIONS, by_section  # noqa: E402

from prodsc import __version__  # noqa: E402

project, author, copyright = "prodsc", "the prodsc developers", "the prodsc developers"
version = release = __version__

extensions = [
    "myst_parser",  # pages are Markdown; nothing here is a notebook, so myst-nb and its Jupyter kernel are not needed
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "site_pages",
    "docstring_markup",
]
exclude_patterns = ["_build", "_generated", "_ext"]
templates_path = ["_templates"]
nitpicky = False  # types in docstrings are words for people, not cross-references

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4  # the anchors of GitHub, which the links of the pages use

autosummary_generate = True
autodoc_typehints = "none"  # docstrings say the types in words
numpydoc_show_class_members = False  # the template lists them
default_role = "code"  # `name` in a docstring is code
highlight_language = "none"  # equations; code says its language

sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "subsection_order": by_section,
    "within_subsection_order": "FileNameSortKey",
    "filename_pattern": r"plot_",
    "abort_on_example_error": True,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "download_all_examples": False,
    "write_computation_times": False,  # its page loads a script from another site
    "plot_gallery": os.environ.get("PRODSC_GALLERY", "True"),  # "False" builds the pages without running examples
    "default_thumb_file": str(DOCS / "images" / "clusters.png"),
}
assert all((DOCS.parent / "examples" / "gallery" / section).is_dir() for section in GALLERY_SECTIONS)

html_theme = "pydata_sphinx_theme"
html_title = f"prodsc {version}"
html_favicon = "_static/favicon.svg"
html_context = {"default_mode": "auto"}
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "prodsc"},
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_prev_next": False,
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
}
html_sidebars = {"index": []}
copybutton_prompt_text = "$ "
suppress_warnings = ["config.cache"]  # functions among the settings cannot be pickled, so a build starts anew
