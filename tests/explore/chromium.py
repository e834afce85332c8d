"""A real browser without a screen, and all that its pages complain of or ask for elsewhere."""

import contextlib
import re
import shutil
from dataclasses import dataclass, field

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine")
_DRAWN = "() => Bokeh.documents.length && Bokeh.documents.every(one => one.is_idle)"
_HERE = ("http://localhost:", "data:", "blob:", "file:")


@dataclass
class Watched:
    """A tab, and what went wrong in it so far."""

    tab: object
    wrong: list = field(default_factory=list)

    def open(self, url):
        """Go there and wait until everything is drawn."""
        self.tab.goto(url)
        self.tab.locator(".bk-Figure").first.wait_for(timeout=60_000)
        self.tab.wait_for_function(_DRAWN)

    @property
    def map(self):
        """The plot of the map."""
        return self.tab.locator(".bk-Figure").first

    def click_map(self, across=0.42, down=0.5):
        """Click somewhere on the map, by shares of its width and height."""
        box = self.map.bounding_box()
        self.tab.mouse.click(box["x"] + across * box["width"], box["y"] + down * box["height"])

    def elite(self):
        """The id of the elite that is shown."""
        heading = self.tab.locator("h3", has_text=re.compile(r"^Elite \d+$"))
        heading.wait_for(timeout=60_000)
        return int(heading.inner_text().split()[1])


@contextlib.contextmanager
def browser():
    """A tab of a new browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        watched = Watched(opened.new_page(viewport={"width": 1500, "height": 1300}))
        tab, wrong = watched.tab, watched.wrong
        tab.set_default_timeout(120_000)  # machines of tests are busy
        tab.on("console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None)
        tab.on("pageerror", lambda error: wrong.append(str(error)))
        tab.on("request", lambda request: None if request.url.startswith(_HERE) else wrong.append(request.url))
        yield watched
        opened.close()
