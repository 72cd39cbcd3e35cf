"""Check that every link within the built site leads to a page, a file or a heading that exists."""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The links and the anchors of one page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the link and the anchor of a tag, if it has any."""
        for name, value in attrs:
            if value and name in ("href", "src"):
                self.links.append(value)
            elif value and (name == "id" or (tag == "a" and name == "name")):
                self.anchors.add(value)


def broken_links(site: Path) -> list[str]:
    """Return a line for each link of the site to something of the site that is not there."""
    found = sorted(site.rglob("*.html"))
    own = [path for path in found if "_static" not in path.parts]  # there a theme has templates
    pages = {path.resolve(): Page(path.read_text("utf-8")) for path in own}
    broken = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            if not target.is_file():
                broken.append(f"{path.relative_to(site.resolve())}: {link} does not exist")
            elif anchor and target in pages and anchor not in pages[target].anchors:
                broken.append(f"{path.relative_to(site.resolve())}: {link} has no such anchor")
    return broken


def main() -> int:
    """Check the site in the folder that is the only argument."""
    site = Path(sys.argv[1])
    if not (site / "index.html").is_file():
        sys.stderr.write(f"the argument must be the folder of a built site, got {site}\n")
        return 2
    broken = broken_links(site)
    sys.stdout.write("\n".join([*broken, f"{len(broken)} broken links"]) + "\n")
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())
