"""For mkdocs: names in docstrings become links."""

from __future__ import annotations

import re
from typing import Any

#: A name such as ``:func:`fsjax.fit```, as Markdown has rendered it.
ROLE = re.compile(r":(?:class|data|func|meth|mod|attr):<code>~?([\w.]+)</code>")


def on_page_content(html: str, **_: Any) -> str:
    """Turns roles into links; names that the site does not have stay plain."""
    return ROLE.sub(_link, html)


def _link(found: re.Match[str]) -> str:
    name = found[1]
    target = name if name.startswith("fsjax.") else f"fsjax.{name}"
    return f'<autoref optional identifier="{target}"><code>{name}</code></autoref>'
