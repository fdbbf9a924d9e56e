"""Configuration of Sphinx: ``make docs`` builds the site in build/site, with warnings as errors."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import sys
from pathlib import Path
from typing import Annotated, Any, get_origin

import jax
from docutils import nodes
from numpy.typing import ArrayLike
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.domains.python import PyObject
from sphinx.environment import BuildEnvironment
from sphinx.util.typing import stringify_annotation

from fsjax import __version__, arguments
from fsjax.estimators import ESTIMATORS
from fsjax.methods import METHODS
from fsjax.registry import about_of

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
from tools.api_examples import shown_by  # noqa: E402

project = "fsjax"
release = __version__
html_title = f"fsjax {release}"
html_show_copyright = False

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
]
exclude_patterns = ["tables", "README.md"]  # index.md includes the latter

# Pages.
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
copybutton_exclude = ".linenos, .gp, .go"

# Tutorials are notebooks written as text. Building the site executes them; an error in one fails
# the build. Their outputs are cached for one state of the code: a change anywhere in it runs them
# again.
_CODE = hashlib.sha256()
for _folder in ("fsjax", "experiments", "configs"):
    for _file in sorted((ROOT / _folder).rglob("*.py")):
        _CODE.update(_file.read_bytes())
# The kernels import experiments and configs, which are not installed.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
nb_execution_mode = "cache"
nb_execution_cache_path = str(ROOT / "build" / "tutorials" / _CODE.hexdigest()[:12])
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_execution_timeout = 900
nb_merge_streams = True
nb_render_markdown_format = "myst"  # with tables
nb_output_stderr = "remove-warn"  # a tutorial that warns or shows a progress bar fails the build
nb_number_source_lines = False

# The reference.
autodoc_member_order = "bysource"
autodoc_default_options = {"no-value": True}
autodoc_type_aliases = {"ArrayLike": "ArrayLike"}
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
napoleon_numpy_docstring = False
napoleon_use_ivar = True
python_display_short_literal_types = True
toc_object_entries_show_parents = "hide"

# Formulas are rendered as SVG by one file of MathJax. It comes from a package, so that neither
# building nor reading a page needs a network; MathJax's menu needs one and is disabled.
_MATHJAX = Path(importlib.util.find_spec("sphinx-mathjax-offline").origin).parent / "static/mathjax"
mathjax_path = "tex-svg-full.js"
mathjax3_config = {"options": {"enableMenu": False}}

# The site.
html_theme = "sphinx_book_theme"
html_static_path = ["assets", str(_MATHJAX / mathjax_path)]
html_css_files = ["extra.css"]
html_js_files = [("extra.js", {"defer": "defer"})]
html_favicon = "assets/favicon.svg"
html_context = {"default_mode": "auto"}  # light or dark, as the reader's system is
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "footer_content_items": [],
    "home_page_in_toc": True,
    "navbar_persistent": [],
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "use_download_button": False,
    "use_fullscreen_button": False,
}

# Beside other versions, as make site builds it, a menu in the sidebar leads to these.
if address := os.environ.get("FSJAX_SITE_ADDRESS"):
    html_theme_options |= {
        "switcher": {
            "json_url": f"{address}/versions.json",
            "version_match": os.environ["FSJAX_SITE_VERSION"],
        },
        "check_switcher": False,  # the list is written after the build
    }
    html_sidebars = {
        "**": [
            "navbar-logo.html",
            "version-switcher.html",
            "search-button-field.html",
            "sbt-sidebar-nav.html",
        ]
    }

#: Names that become links, and the nodes in which they stay plain text.
NAME = re.compile(r"fsjax(\.\w+)+")
UNLINKED = (nodes.reference, nodes.title, pending_xref)


#: Types of other packages that autodoc writes out.
KNOWN_TYPES = {"ArrayLike": ArrayLike, "jax.Array": jax.Array}

#: What autodoc writes for a type, and the name that a reader knows.
SHORT_TYPES = {
    stringify_annotation(annotation, mode): name
    for name, annotation in {**vars(arguments), **KNOWN_TYPES}.items()
    if name in KNOWN_TYPES or get_origin(annotation) is Annotated
    for mode in ("smart", "fully-qualified-except-typing", "fully-qualified")
}


def skip_member(
    app: Sphinx, kind: str, name: str, obj: Any, skip: bool, options: Any
) -> bool | None:
    """Omit members of other libraries, and fields of named tuples, which docstrings describe."""
    external = not (getattr(obj, "__module__", None) or "fsjax").startswith("fsjax")
    return True if external or type(obj).__name__ == "_tuplegetter" else None


def plain_defaults(
    app: Sphinx, kind: str, name: str, obj: Any, options: Any, signature: str | None, returns: Any
) -> tuple[str | None, Any]:
    """Show functions that are default values by name, without their address."""
    return signature and re.sub(r"<function (\w+)[^>]*>", r"\1", signature), returns


def short_types(app: Sphinx, domain: str, kind: str, content: nodes.Element) -> None:
    """Show ``ArrayLike`` and ``Count`` by name, where autodoc has written out what they are."""
    for types in app.env.current_document.autodoc_annotations.values():
        for argument, text in types.items():
            types[argument] = _shortened(text)


def _shortened(text: str) -> str:
    for written_out, short in SHORT_TYPES.items():
        text = text.replace(written_out, short)
    return text


def link_names(app: Sphinx, doctree: nodes.document) -> None:
    """Link names such as ``fsjax.fit`` in the text, if the site documents them."""
    for literal in list(doctree.findall(nodes.literal)):
        parent = literal.parent
        # A literal that is the text of a link lies in an inline node of that link.
        if NAME.fullmatch(literal.astext()) and not isinstance(parent, (*UNLINKED, nodes.inline)):
            link = pending_xref(
                "",
                refdomain="py",
                reftype="obj",
                reftarget=literal.astext(),
                refdoc=app.env.docname,
                refwarn=False,
            )
            parent.replace(literal, link)
            link += literal


#: The examples of our methods and estimators, which differ in their names alone.
METHOD = """
   result = fsjax.fit(fsjax.methods.{name}({arguments}), data, num_features=2)
   print(result.selected)"""
ESTIMATOR = """
   selector = fsjax.estimators.{name}(n_features_to_select=2)
   selected = selector.fit_transform(data.X, data.y)"""


def add_example(
    app: Sphinx, kind: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Put an example, or a link to one, below a docstring, whose types are named as readers know
    them."""
    if kind == "data" and type(obj).__doc__ == obj.__doc__:
        lines.clear()  # what a tuple or a dict is
    lines[:] = [_shortened(line) for line in lines]  # napoleon writes types of attributes
    module, _, short = name.rpartition(".")
    code = ""
    if module == "fsjax.methods" and short in METHODS:
        takes_number = about_of(METHODS[short].registration).num_features is not None
        code = METHOD.format(name=short, arguments="num_features=2" * takes_number)
    elif module == "fsjax.estimators" and obj in ESTIMATORS.values():
        code = ESTIMATOR.format(name=short)
    if code:
        lines += ["", ".. rubric:: Example", "", ".. code-block:: python", *code.split("\n"), ""]
    elif kind != "module" and (host := shown_by(name)) not in (None, name):
        lines += ["", ".. rubric:: Example", "", f"As of ``{host}``.", ""]


def find_public_name(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.Element
) -> nodes.Element | None:
    """Link ``fsjax.engine.fit.fit`` to ``fsjax.fit``; undocumented names stay plain text."""
    if node.get("refdomain") != "py":
        return None
    objects = env.domains.python_domain.objects
    *target_modules, target_name = node["reftarget"].split(".")
    matches = []
    for public_name in objects:
        *public_modules, last = public_name.split(".")
        remaining = iter(target_modules)  # the public modules have to occur here in this order
        if last == target_name and all(module in remaining for module in public_modules):
            matches.append(public_name)
    if len(matches) != 1:
        return None
    entry = objects[matches[0]]
    uri = app.builder.get_relative_uri(node["refdoc"], entry.docname)
    return nodes.reference("", "", content, internal=True, refuri=f"{uri}#{entry.node_id}")


def write_summary(app: Sphinx, exception: Exception | None) -> None:
    """Write ``llms.txt``: each page with the first sentence below its title, for machines."""
    if exception is not None or app.builder.format != "html":
        return
    env = app.env
    lines = ["# fsjax", "", f"> {_first_sentence(env.get_doctree(app.config.root_doc))}", ""]
    for name in sorted(env.found_docs):
        link = f"[{env.titles[name].astext()}]({app.builder.get_target_uri(name)})"
        lines.append(f"- {link}: {_first_sentence(env.get_doctree(name))}".removesuffix(": "))
    (Path(app.outdir) / "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _first_sentence(doctree: nodes.document) -> str:
    """The first sentence below the title, without line breaks."""
    for paragraph in doctree.findall(nodes.paragraph):
        if isinstance(paragraph.parent, nodes.section) and paragraph.parent.parent is doctree:
            text = " ".join(paragraph.astext().split())
            return re.split(r"(?<=[.?!])\s+(?=[A-Z])", text, maxsplit=1)[0].rstrip(":")
    return ""


def setup(app: Sphinx) -> None:
    """Register the hooks of this file; Sphinx calls this function."""
    for field in PyObject.doc_field_types:
        if field.name == "variable":
            field.label = "Attributes"
    app.connect("autodoc-skip-member", skip_member)
    app.connect("autodoc-process-signature", plain_defaults)
    app.connect("autodoc-process-docstring", add_example, priority=900)  # after napoleon
    app.connect("object-description-transform", short_types, priority=400)
    app.connect("doctree-read", link_names)
    app.connect("missing-reference", find_public_name)
    app.connect("build-finished", write_summary)
