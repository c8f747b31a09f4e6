"""What mkdocs.yml has built of files at the top: README.md is the first page, and links between all of them hold.

On the forge a link leads from the top into docs and back; on the site all pages lie in one folder.
"""

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
TOP = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
PICTURES = "assets/readme/"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages of the top, and the pictures of README."""
    for name, page in TOP.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / name)))
    for path in sorted((ROOT / PICTURES).iterdir()):
        files.append(File.generated(config, PICTURES + path.name, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links of a page as they are between the pages of the site."""
    if page.file.src_uri in TOP.values():
        markdown = re.sub(r"\]\(docs/", "](", markdown)
    for name, there in TOP.items():
        markdown = re.sub(rf"\]\((\.\./)?{re.escape(name)}(?=[)#])", f"]({there}", markdown)
    return markdown
