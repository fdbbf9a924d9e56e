"""Self-contained HTML pages for reports: wide and narrow screens, light and dark colours.

Pages load nothing from elsewhere and need no script.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping, Sequence

STYLE = """
:root { --text: #1b1f24; --page: #ffffff; --soft: #f4f5f7; --line: #d5d9df; --link: #0b5cad; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e4e7eb; --page: #16191d; --soft: #22262c; --line: #3b4149; --link: #7db7f0; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 62rem; padding: 1rem; color: var(--text);
  background: var(--page); font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: 0.5rem 0; } h2 { font-size: 1.15rem; margin: 2rem 0 0.5rem; }
a { color: var(--link); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.88rem; }
th, td { border-bottom: 1px solid var(--line); padding: 0.3rem 0.7rem; text-align: right;
  white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
.words { text-align: left; white-space: normal; overflow-wrap: anywhere; min-width: 12em; }
.words:nth-child(n + 3) { min-width: 24em; }
thead th { background: var(--soft); }
figure { margin: 1rem 0; } figcaption { font-size: 0.9rem; margin-bottom: 0.3rem; }
figure > * { max-width: 100%; }
img, svg { height: auto; background: #ffffff; border-radius: 4px; padding: 4px; }
pre { background: var(--soft); padding: 0.7rem; overflow-x: auto; font-size: 0.82rem; }
summary { cursor: pointer; } details { margin: 0.4rem 0; }
@media (max-width: 40rem) {
  body { padding: 0.7rem; } h1 { font-size: 1.25rem; overflow-wrap: anywhere; }
  th, td { padding: 0.25rem 0.45rem; }
  .facts td { white-space: normal; } .facts td:first-child { min-width: 7em; }
  .words, .words:nth-child(n + 3) { min-width: 9em; }
}
"""


def rows_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table that scrolls sideways."""
    top = "".join(f"<th>{html.escape(str(text))}</th>" for text in head)
    body = "".join(
        f"<tr>{''.join(f'<td>{html.escape(text)}</td>' for text in row)}</tr>" for row in rows
    )
    return _scrolling(body, f"<thead><tr>{top}</tr></thead>")


def facts_table(values: Mapping[str, str]) -> str:
    """A table of names and their values."""
    rows = "".join(
        f"<tr><td>{html.escape(name)}</td><td class='words'>{html.escape(value)}</td></tr>"
        for name, value in values.items()
    )
    return _scrolling(rows, kind="facts")


def _scrolling(rows: str, head: str = "", kind: str = "") -> str:
    """A table from its rows and its head as HTML, with a class for its style."""
    opening = f"<table class='{kind}'>" if kind else "<table>"
    return f"<div class='scroll'>{opening}{head}<tbody>{rows}</tbody></table></div>"


def page_of(title: str, sections: Iterable[str]) -> str:
    """A whole page from its sections as HTML."""
    body = "\n".join(sections)
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<meta name='color-scheme' content='light dark'><title>{html.escape(title)}</title>"
        f"<style>{STYLE}</style></head><body><h1>{html.escape(title)}</h1>\n{body}\n</body></html>\n"
    )


def inline_svg(text: str, name: str, caption: str) -> str:
    """An SVG for embedding in a page: without its head, with ids that are unique on the page."""
    text = re.sub("<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", text[text.index("<svg") :])
    return text.replace("<svg", f"<svg role='img' aria-label='{caption}'", 1)
