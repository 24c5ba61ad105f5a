"""Headless Chromium for tests of the report's page; without it, or without Playwright, tests are skipped with the reason."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from made_up import known


def chromium() -> str:
    """Returns Chromium's place. Ends the process as skipped (77) where a browser cannot be driven."""
    place = shutil.which("chromium")
    if place is None:
        print("skipped: the report's page: chromium is not installed (./setup test installs it)")
        sys.exit(77)
    try:
        import playwright  # noqa: F401
    except ImportError:
        print("skipped: the report's page: the wheel playwright is not installed (./setup test installs it)")
        sys.exit(77)
    return place


CHROMIUM = chromium()


@contextmanager
def opened_browser() -> Iterator[Any]:
    """Yields a headless browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        try:
            yield browser
        finally:
            browser.close()


class Problems:
    """The faults of a page: errors of scripts, messages of its console, and requests, of which it must make none."""

    def __init__(self, page: Any, own: str) -> None:
        self.seen: list[str] = []
        page.on("pageerror", lambda error: self.seen.append(f"error: {error}"))
        page.on("console", self._note_console)
        page.on("request", lambda request: self._note_request(request.url, own))

    def _note_console(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.seen.append(f"{message.type}: {message.text}")

    def _note_request(self, url: str, own: str) -> None:
        if not url.startswith((own, "data:")):
            self.seen.append(f"request: {url}")


def open_page(browser: Any, file: Path, **options: Any) -> tuple[Any, Problems]:
    """Returns the report in `file`, drawn, in a page of its own, and a list of what goes wrong in it from now on."""
    context = browser.new_context(offline=True, **({"viewport": {"width": 1280, "height": 800}} | options))
    page = context.new_page()
    problems = Problems(page, file.as_uri())
    page.goto(file.as_uri())
    page.wait_for_selector("html[data-ready=true]", timeout=30_000)
    return page, problems


@contextmanager
def written(explanation: dict[str, Any], **given: dict[str, Any]) -> Iterator[Path]:
    """Yields the report that `collage report` writes of an explanation; `given` may hold `other` and `profile`."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = {kind: folder / f"{kind}.json" for kind in given}
        for kind, content in ({"explanation": explanation} | given).items():
            (folder / f"{kind}.json").write_text(json.dumps(known(content) if kind != "profile" else content))
        options = {"other": "--compare", "profile": "--profile"}
        words = [word for kind, file in files.items() for word in (options[kind], str(file))]
        page = folder / "report.html"
        subprocess.run(
            [os.environ["COLLAGE_REPORT_COMMAND"], "report", folder / "explanation.json", "-o", page, *words],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        yield page
