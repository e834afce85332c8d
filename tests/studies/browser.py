"""A page opened in a real browser without a screen: its final content, its complaints, and what it wanted to fetch."""

import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@dataclass(frozen=True)
class Opened:
    """What came of opening a page."""

    dom: str
    console: list[str]
    requests: list[str]


def opened(page: Path, scratch: Path) -> Opened:
    """Open a file; every name of a host is answered with "not found"."""
    log = scratch / "net.json"
    options = [
        "--headless", "--disable-gpu", "--no-sandbox", "--no-first-run", "--disable-extensions", "--disable-sync",
        "--disable-background-networking", "--disable-component-update", "--disable-default-apps",
        "--host-resolver-rules=MAP * ~NOTFOUND", "--enable-logging=stderr", "--log-level=0",
        f"--user-data-dir={scratch / 'profile'}", f"--log-net-log={log}", "--net-log-capture-mode=Everything",
        "--virtual-time-budget=5000", "--dump-dom", page.resolve().as_uri(),
    ]  # fmt: skip
    done = subprocess.run([str(CHROMIUM), *options], capture_output=True, text=True, timeout=120, check=True)
    console = [line for line in done.stderr.splitlines() if ":CONSOLE" in line]
    return Opened(done.stdout, console, _asked(json.loads(log.read_text())))


def _asked(log: dict) -> list[str]:
    """Addresses outside that the page asked for; what the browser asks for by itself comes from no page."""
    events = [event.get("params", {}) for event in log["events"]]
    asked = {params.get("url", "") for params in events if params.get("initiator", "not an origin") != "not an origin"}
    return sorted(url for url in asked if not url.startswith(("file:", "data:", "chrome:", "about:")))
