"""The report's page in a browser: it asks for nothing, complains of nothing, and can be read by everyone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from oortriage.api import Analyzer
from oortriage.report._interface import Style, open_report, render_all
from oortriage.report.compose import compose
from oortriage.report.material import Material
from oortriage.report.page import html_page
from tests.browser.conftest import SCHEMES, WIDTHS, Opener
from tests.report._composed import everything
from tests.report.test_replay import experiment, reproduction

pytestmark = pytest.mark.browser

CASE = "triton/vllm-36802-t4-fp32-head256"
LOGS = (CASE, "vllm", "clean")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory, analyzer: Analyzer, fixtures: Path) -> dict[str, Path]:
    """A full report, one with hostile text everywhere, and one of several logs."""
    folder = tmp_path_factory.mktemp("pages")
    diagnosis = analyzer.file(fixtures / CASE / "log.txt", name="crash.log")
    logs = [next(iter(sorted((fixtures / name).rglob("log.txt")))) for name in LOGS]
    many = [analyzer.file(log, name=f"{log.parent.name}.log") for log in logs]
    texts = {
        "report": html_page(compose(Material(diagnosis, reproduction(), experiment(), environment={"Python": "3.13"}))),
        "hostile": html_page(compose(everything('"><img src="https://evil.example/x"><script>document.title=1</script>'))),
        "many": render_all(open_report("html", Style(many=True)), many),
    }  # fmt: skip
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return {name: folder / f"{name}.html" for name in texts}


@pytest.mark.parametrize(
    ("name", "width", "scheme"),
    [("report", width, scheme) for width in WIDTHS for scheme in SCHEMES]
    + [(name, *one) for name in ("hostile", "many") for one in ((400, "dark"), (1280, "light"))],
)
def test_the_page_is_quiet_fits_and_is_accessible(
    name: str,
    width: int,
    scheme: str,
    pages: dict[str, Path],
    watch: Opener,
    axe: Callable[[Any], list[str]],
    shot: Callable[[Any, str], None],
) -> None:
    with watch(pages[name], width=width, scheme=scheme) as (page, problems, requests):
        shot(page, f"{name}-{width}-{scheme}")
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert axe(page) == []
        assert wide <= width
        assert (problems, requests) == ([], [])


def test_the_page_goes_dark_and_its_pictures_with_it(pages: dict[str, Path], watch: Opener) -> None:
    grounds = {}
    for scheme in SCHEMES:
        with watch(pages["report"], scheme=scheme) as (page, _, _):
            grounds[scheme] = [
                page.eval_on_selector(one, f"one => getComputedStyle(one).{style}")
                for one, style in (("body", "backgroundColor"), (".oor-ground", "fill"), (".oor-head", "fill"))
            ]
    assert all(light != dark for light, dark in zip(*grounds.values(), strict=True))


def test_paper_is_white_and_nothing_is_cut_off(pages: dict[str, Path], watch: Opener) -> None:
    with watch(pages["report"], width=700, scheme="dark") as (page, _, _):
        page.emulate_media(media="print")
        assert page.eval_on_selector(".oor-ground", "one => getComputedStyle(one).fill") == "rgb(255, 255, 255)"
        assert page.eval_on_selector(".oor-head", "one => getComputedStyle(one).fill") == "rgb(27, 31, 36)"
        assert page.is_hidden("nav")
        assert {page.eval_on_selector_all(".scroll", "all => all.map(one => getComputedStyle(one).overflowX)")[0]} == {
            "visible"
        }


def test_the_keyboard_reaches_the_report_first_and_every_scrolling_region(
    pages: dict[str, Path], watch: Opener
) -> None:
    with watch(pages["report"], width=400) as (page, _, _):
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        assert page.evaluate("document.activeElement.getBoundingClientRect().left >= 0")
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "content"
        wanted = page.eval_on_selector_all(".scroll", "all => all.map(one => one.getAttribute('aria-label'))")
        reached = []
        # From the report on, and no step more: behind the last one the focus leaves the page.
        for _ in wanted:
            page.keyboard.press("Tab")
            reached.append(page.evaluate("document.activeElement.getAttribute('aria-label')"))
        assert reached == wanted


def test_a_link_of_the_contents_goes_to_its_section(pages: dict[str, Path], watch: Opener) -> None:
    with watch(pages["report"]) as (page, _, _):
        for link in page.query_selector_all("nav a"):
            target = link.get_attribute("href").removeprefix("#")
            assert page.evaluate("name => document.getElementById(name) !== null", target), target
        page.click("nav a >> text=Evidence")
        assert page.evaluate("Math.abs(document.getElementById('evidence').getBoundingClientRect().top)") < 200


def test_no_script_could_run_if_one_got_in(pages: dict[str, Path], watch: Opener, tmp_path: Path) -> None:
    """The policy is a second wall: it refuses what escaping should have stopped."""
    text = pages["report"].read_text(encoding="utf-8")
    broken = tmp_path / "broken.html"
    inserted = (
        "<script>document.title='owned'</script><img src='https://evil.example/x' onerror=\"document.title='o'\">"
    )
    broken.write_text(text.replace("<footer>", f"{inserted}<footer>"), encoding="utf-8")
    with watch(broken) as (page, problems, _):
        assert "owned" not in page.title()
        assert any("Content Security Policy" in one for one in problems)
