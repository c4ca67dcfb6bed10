"""Pages of the docs' site that are outside ``docs/``: the README as the start, and others.

A link out of ``docs/`` leads to such a page; one to a file that is no page shows the path as text.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.plugins import get_plugin_logger
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
BESIDE = {"README.md": "index.md", "CHANGELOG.md": "CHANGELOG.md", "SECURITY.md": "SECURITY.md",
          "CONTRIBUTING.md": "CONTRIBUTING.md", "deploy/README.md": "deploy/README.md"}  # fmt: skip
"""By their path in the project, where they are in the site."""

_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#)([^)#\s]+)(#[^)\s]*)?\)")

_PICTURE = re.compile(r'\b(src|srcset)="(?!https?:|data:)([^"]+)"')
"""Of a picture with a dark and a light form, which Markdown has no words for."""

_log = get_plugin_logger("docs_hook")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages beside the docs."""
    for source, place in BESIDE.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, place, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Have links between the docs and the pages beside them lead to where those are here."""
    place = page.file.src_uri
    source = next((s for s, p in BESIDE.items() if p == place), f"docs/{place}")
    markdown = _PICTURE.sub(lambda found: _shown(found, source, place), markdown)
    return _LINK.sub(lambda found: _led(found, source, place), markdown)


def _shown(found: re.Match[str], source: str, place: str) -> str:
    meant = posixpath.normpath(posixpath.join(posixpath.dirname(source), found[2]))
    if not (ROOT / meant).is_file():
        _log.warning(f"{source}: the picture {found[2]} is not there")
        return found[0]
    there = posixpath.relpath(meant, posixpath.join("docs", posixpath.dirname(place)))
    return f'{found[1]}="{there}"'


def _led(found: re.Match[str], source: str, place: str) -> str:
    mark, text, link, anchor = found[1], found[2], found[3], found[4] or ""
    meant = posixpath.normpath(posixpath.join(posixpath.dirname(source), link))
    if (ROOT / meant / "README.md").is_file():  # a folder, by its own page
        meant = f"{meant}/README.md"
    if meant in BESIDE:
        there = BESIDE[meant]
    elif meant.startswith("docs/"):
        there = meant.removeprefix("docs/")
    elif not (ROOT / meant).exists():
        return found[0]  # broken: the build says so
    else:
        return f"{text} (`{meant}`)"
    return f"{mark}[{text}]({posixpath.relpath(there, posixpath.dirname(place) or '.')}{anchor})"
