"""The local page in a browser: drop a log, read the verdict; nothing leaves loopback, nothing complains."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from .conftest import SCHEMES, WIDTHS

pytestmark = pytest.mark.browser
pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

MAIN = [sys.executable, "-c", "from oortriage.cli.app import main; main()", "serve", "--port", "0"]
DROP = """
([name, text]) => {
  const data = new DataTransfer();
  data.items.add(new File([text], name));
  for (const kind of ["dragover", "drop"]) {
    document.getElementById("drop").dispatchEvent(
      new DragEvent(kind, {dataTransfer: data, bubbles: true, cancelable: true}));
  }
}
"""


@pytest.fixture
def address():
    child = subprocess.Popen(MAIN, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        yield child.stdout.readline().strip()
    finally:
        child.terminate()
        child.communicate()


@pytest.fixture(scope="session")
def crash(fixtures: Path) -> Path:
    return fixtures / "triton" / "vllm-36802-t4-fp32-head256" / "log.txt"


def shown(page):
    page.wait_for_selector("#result:not([hidden])")
    frame = page.frame_locator("#report")
    frame.locator("h1").wait_for()
    return frame


def local(requests):
    return all(urlsplit(one).hostname == "127.0.0.1" for one in requests)


def fits(page):
    return page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_drop_a_log_and_see_the_verdict(watch, address, crash):
    with watch(address) as (page, problems, requests):
        page.evaluate(DROP, ["crash.log", crash.read_text()])
        frame = shown(page)
        assert "Shared memory of one block" in page.inner_text("#verdict")
        assert "81,920" in frame.locator("body").inner_text()
        assert page.evaluate("document.activeElement.id") == "result-title"
        assert "is read" in page.inner_text("#status")
        with page.expect_download() as got:
            page.click("#as-markdown")
        assert got.value.suggested_filename == "oortriage-report.md"
        page.reload()
        shown(page)
        assert problems == []
        assert requests
        assert local(requests)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_every_width_in_light_and_dark(watch, axe, shot, address, crash, width, scheme):
    with watch(address, width=width, scheme=scheme) as (page, problems, requests):
        page.locator("#kernel option").nth(1).wait_for(state="attached")
        assert axe(page) == []
        assert fits(page)
        shot(page, f"serve-empty-{width}-{scheme}")
        page.set_input_files(
            "#file",
            [
                {"name": "a.log", "mimeType": "", "buffer": b"CUDA out of memory\n"},
            ],
        )
        shown(page)
        page.set_input_files("#file", str(crash))
        page.locator("#list li").nth(1).wait_for()
        shown(page)
        assert axe(page) == []
        assert fits(page)
        shot(page, f"serve-result-{width}-{scheme}")
        assert problems == []
        assert local(requests)


def test_keyboard_and_pasted_text(watch, address):
    with watch(address) as (page, problems, _):
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.id") == "choose"
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        page.keyboard.insert_text("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB.\n")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        shown(page)
        assert page.inner_text("#result-title") == "pasted.log"
        assert not page.is_visible("#experiment-form")
        assert "no kernel" in page.inner_text("#experiment-why")
        page.click("#forget")
        page.wait_for_selector("#result", state="hidden")
        assert problems == []


def test_a_hostile_log_and_name_stay_text(watch, address):
    name = "<img src=x onerror=document.title='caught'>.log"
    text = "<script>parent.document.title='caught'</script>\nCUDA out of memory. Tried to allocate <b>20.00 GiB</b>\n"
    with watch(address) as (page, problems, requests):
        page.evaluate(DROP, [name, text])
        page.wait_for_selector("#result:not([hidden])")
        shown(page)
        assert page.inner_text("#result-title") == name
        assert page.locator("#result img").count() == 0
        assert page.title() != "caught"
        assert problems == []
        assert local(requests)


def test_the_experiment_tells_what_is_missing_and_can_be_stopped(watch, address, crash):
    with watch(address) as (page, problems, _):
        page.set_input_files("#file", str(crash))
        shown(page)
        page.select_option("#kernel", "reference.attention")
        page.fill("#gpu", "no such card")
        page.click("#start")
        page.wait_for_selector("#experiment-problem:not([hidden])")
        assert "no such card" in page.inner_text("#experiment-problem")
        page.fill("#gpu", "T4")
        page.click("#start")
        page.wait_for_selector("#stop:not([hidden])")
        assert page.is_visible("#progress")
        page.click("#stop")
        page.wait_for_selector("#stop", state="hidden")
        assert page.inner_text("#experiment-status") == "Stopped."
        assert problems == []


def test_what_is_too_large_is_not_sent(watch, address):
    with watch(address) as (page, problems, requests):
        page.locator("#kernel option").nth(1).wait_for(state="attached")
        page.evaluate("limitBytes = 3")
        page.set_input_files("#file", [{"name": "big.log", "mimeType": "", "buffer": b"12345"}])
        page.wait_for_selector("#problem:not([hidden])")
        assert "big.log" in page.inner_text("#problem")
        assert not [one for one in requests if "name=big" in one]
        assert problems == []


def test_another_page_on_the_machine_cannot_reach_it(watch, address, tmp_path):
    (tmp_path / "evil.html").write_text(
        f"<title>x</title><script src='{address}page.js'></script><iframe src='{address}'></iframe>"
    )
    with watch(tmp_path / "evil.html") as (page, problems, _):
        page.wait_for_timeout(500)
        assert problems
        answer = page.evaluate(
            "address => fetch(address + 'logs', {method: 'POST', mode: 'no-cors', body: 'x'})"
            ".then(one => one.type, () => 'failed')",
            address,
        )
        assert answer in ("opaque", "failed")
    with watch(address) as (page, _, _):
        page.locator("#kernel option").nth(1).wait_for(state="attached")
        assert page.is_hidden("#result")
