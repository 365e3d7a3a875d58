"""What browser tests share: Debian's Chromium by Playwright, a page that is watched, and axe-core.

All of it is skipped where Playwright, Chromium or axe-core is missing. ``AXE_CORE_JS`` names an ``axe.min.js``;
without it npm is asked for the package.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

WIDTHS = (400, 800, 1280)
SCHEMES = ("light", "dark")
AXE_RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


class Watched(NamedTuple):
    """A page, what it complained about so far, and every address it asked for."""

    page: Any
    problems: list[str]
    requests: list[str]


Opener = Callable[..., contextlib.AbstractContextManager[Watched]]


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """One browser for the whole run."""
    playwright = pytest.importorskip("playwright.sync_api")
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        pytest.skip("no chromium")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def watch(chromium: Any) -> Opener:
    """Open an address (or a file's path) in a fresh context.

    ``with watch(address, width=400, scheme="dark") as (page, problems, requests):`` — ``problems`` holds console
    errors and warnings, exceptions and failed requests; ``requests`` every address but the page's own. Further
    arguments go to Playwright's ``new_context``.
    """

    @contextlib.contextmanager
    def opened(address: str | Path, width: int = 1280, scheme: str = "light", **more: Any) -> Iterator[Watched]:
        url = address.as_uri() if isinstance(address, Path) else address
        context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, **more)
        try:
            page = context.new_page()
            problems: list[str] = []
            requests: list[str] = []
            page.on("console", lambda said: problems.append(said.text) if said.type in ("error", "warning") else None)
            page.on("pageerror", lambda raised: problems.append(str(raised)))
            page.on("requestfailed", lambda request: problems.append(f"failed: {request.url}"))
            page.on("request", lambda request: requests.append(request.url) if request.url != url else None)
            page.goto(url)
            yield Watched(page, problems, requests)
        finally:
            context.close()

    return opened


@pytest.fixture(scope="session")
def axe_source(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The text of axe.min.js."""
    given = os.environ.get("AXE_CORE_JS")
    if given:
        return Path(given).read_text(encoding="utf-8")
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("no axe-core: neither AXE_CORE_JS nor npm")
    folder = tmp_path_factory.mktemp("axe")
    try:
        subprocess.run([npm, "pack", "axe-core@4"], cwd=folder, check=True, capture_output=True, timeout=60)
    except (OSError, subprocess.SubprocessError) as problem:
        pytest.skip(f"no axe-core: {problem}")
    with tarfile.open(next(folder.glob("axe-core-*.tgz"))) as packed:
        member = packed.extractfile("package/axe.min.js")
        assert member is not None
        return member.read().decode()


@pytest.fixture
def axe(axe_source: str) -> Callable[[Any], list[str]]:
    """Say what axe-core finds wrong with a page: one line an element."""

    def violations(page: Any) -> list[str]:
        # Not as a script element: the page's own policy refuses those, and stays in force.
        page.evaluate(axe_source + "\n;undefined")
        found = page.evaluate("tags => axe.run(document, {runOnly: tags})", AXE_RULES)
        return [
            f"{one['id']}: {one['help']}: {node['html'][:200]}" for one in found["violations"] for node in one["nodes"]
        ]

    return violations


@pytest.fixture
def shot() -> Callable[[Any, str], None]:
    """Keep a picture of a whole page in the folder that ``BROWSER_SHOTS`` names; without it, do nothing."""

    def take(page: Any, name: str) -> None:
        folder = os.environ.get("BROWSER_SHOTS")
        if folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
            page.screenshot(path=str(Path(folder) / f"{name}.png"), full_page=True)

    return take
