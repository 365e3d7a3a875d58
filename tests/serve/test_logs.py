"""Logs in, reports out: what is taken, refused, kept and forgotten."""

from __future__ import annotations

import gzip
import json
import tempfile
import threading
from pathlib import Path

import pytest

from oortriage.report.compose import compose
from oortriage.report.page import html_page
from oortriage.serve.app import build
from oortriage.serve.rendering import material_of
from oortriage.serve.results import Results

from .conftest import RAW, SMALL, TOKEN

SECRET = "hf_" + "AbCdEfGhIjKlMnOpQrStUvWxYz01234567"


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def report(page, key, **query):
    return page("GET", f"logs/{key}/report", params=query)


def test_a_log_gives_its_verdict_and_is_listed(page, crash, temporary):
    answer = page.add(crash)
    assert answer.status_code == 201
    row = answer.json()
    assert (row["resource"], row["status"], row["name"]) == ("shared_memory", "fatal", "crash.log")
    assert "65,536" in row["title"]
    assert page("GET", "logs").json()["logs"] == [row]
    assert list(temporary.iterdir()) == []


def test_unredacted_it_is_the_page_that_the_command_writes(page, crash, analyzer, tmp_path):
    (tmp_path / "x").write_bytes(crash)
    key = page.add(crash).json()["id"]
    diagnosis = analyzer.file(tmp_path / "x", name="crash.log")
    assert report(page, key, redact="0").text == html_page(compose(material_of("crash.log", diagnosis, None)))


@pytest.mark.parametrize("pack", [gzip.compress, __import__("lzma").compress, lambda x: x.decode().encode("utf-16")])
def test_compressed_and_utf16_logs_are_read(page, crash, pack):
    assert page.add(pack(crash)).json()["resource"] == "shared_memory"


@pytest.mark.parametrize(
    ("kind", "media", "ending"),
    [
        ("html", "text/html", ".html"),
        ("markdown", "text/markdown", ".md"),
        ("json", "application/json", ".json"),
        ("sarif", "application/sarif+json", ".sarif"),
    ],
)
def test_downloads(page, crash, kind, media, ending):
    key = page.add(crash, name='x";\r\nSet-Cookie: a=b;.log').json()["id"]
    answer = report(page, key, format=kind, download="")
    assert answer.headers["content-type"].startswith(media)
    assert answer.headers["content-disposition"] == f'attachment; filename="oortriage-report{ending}"'
    assert "set-cookie" not in answer.headers
    if kind in ("json", "sarif"):
        json.loads(answer.text)


@pytest.mark.parametrize("kind", ["html", "markdown", "json", "sarif"])
def test_secrets_are_redacted_unless_asked_for(page, crash, kind):
    lines = crash.decode().splitlines()
    log = "\n".join(f"{one} token={SECRET}" if "OutOfResources" in one else one for one in lines).encode()
    row = page.add(log).json()
    assert SECRET not in json.dumps(row)
    assert SECRET not in report(page, row["id"], format=kind).text
    assert SECRET in report(page, row["id"], format="json", redact="0").text


def test_a_report_runs_nothing_and_is_framed_by_the_page_only(page, crash):
    key = page.add(crash).json()["id"]
    policy = report(page, key).headers["content-security-policy"]
    assert "script-src" not in policy
    assert "default-src 'none'" in policy
    assert "sandbox" in policy
    assert "allow-scripts" not in policy
    assert "allow-same-origin" not in policy
    assert "frame-ancestors 'none'" in policy
    framed = page("GET", f"logs/{key}/report", headers={"sec-fetch-dest": "iframe"})
    assert "frame-ancestors 'self'" in framed.headers["content-security-policy"]


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\logs\\crash.log", "crash.log"),
        ("", "pasted.log"),
        ("..", "pasted.log"),
        ("\x1b[31mred\n.log", "\\x1b[31mred .log"),
        ("a\u202egol.exe", "a\\u202egol.exe"),
    ],
)
def test_hostile_names(page, crash, name, wanted):
    assert page.add(crash, name=name).json()["name"] == wanted


def test_a_name_with_markup_stays_text(page, crash):
    row = page.add(crash, name="<img src=x onerror=alert(1)>.log").json()
    assert row["name"] == "<img src=x onerror=alert(1)>.log"
    for redact in ("0", "1"):
        assert "<img" not in report(page, row["id"], redact=redact).text
    assert len(page.add(crash, name="x" * 5000).json()["name"]) <= 120


@pytest.mark.parametrize(
    "data", [b"\0" * 1000, bytes(range(256)) * 50, b"<script>alert(1)</script>\n" * 9, b"\x1f\x8b\x08junk", b"\n"]
)
def test_hostile_contents_get_a_verdict(page, data):
    row = page.add(data).json()
    assert row["resource"] in ("none", "undetermined")
    answer = report(page, row["id"])
    assert answer.status_code == 200
    assert "<script" not in answer.text


def test_a_lie_about_the_length_is_refused_before_anything_is_read(page):
    answer = page.add(b"x", **{"content-length": str(10 * 2**30)})
    assert answer.status_code == 413
    assert "--max-upload" in answer.json()["problem"]
    assert answer.headers["connection"] == "close"


def test_a_stream_over_the_limit_is_cut_off_and_leaves_no_file(page, temporary):
    taken = 0

    def endless():
        nonlocal taken
        for _ in range(1000):
            taken += 1
            yield b"x" * 10_000

    assert page("POST", "logs", content=endless(), headers=RAW).status_code == 413
    assert list(temporary.iterdir()) == []
    assert page("GET", "logs").json()["logs"] == []


def test_a_bomb_is_refused(page, temporary):
    bomb = gzip.compress(b"\0" * 50_000_000)
    assert len(bomb) < SMALL.upload_bytes
    answer = page.add(bomb)
    assert answer.status_code == 413
    assert "decompressed" in answer.json()["problem"]
    assert list(temporary.iterdir()) == []


def test_an_empty_log_and_another_kind_of_body_are_refused(page):
    assert page.add(b"").status_code == 422
    for kind in ("text/plain", "multipart/form-data; boundary=x", "application/x-www-form-urlencoded"):
        assert page("POST", "logs", content=b"x", headers={"content-type": kind}).status_code == 415


def test_a_full_disk_is_said(page, crash, monkeypatch):
    def full(**_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "mkstemp", full)
    answer = page.add(crash)
    assert (answer.status_code, "No space left" in answer.json()["problem"]) == (507, True)


def test_so_many_results_are_kept(page, crash):
    keys = [page.add(crash, name=f"{number}.log").json()["id"] for number in range(5)]
    assert [one["name"] for one in page("GET", "logs").json()["logs"]] == ["4.log", "3.log", "2.log"]
    assert report(page, keys[0]).status_code == 404
    assert page("DELETE", f"logs/{keys[4]}").status_code == 204
    assert page("DELETE", f"logs/{keys[4]}").status_code == 404


def test_results_grow_old(analyzer, open_page, crash):
    now = [0.0]
    page = open_page(build(analyzer, SMALL, token=TOKEN, results=Results(SMALL, lambda: now[0])))
    key = page.add(crash).json()["id"]
    now[0] = 59
    assert report(page, key).status_code == 200
    now[0] = 61
    assert report(page, key).status_code == 404
    assert page("GET", "logs").json()["logs"] == []


def test_the_end_forgets_everything(analyzer, open_page, crash):
    results = Results(SMALL)
    page = open_page(build(analyzer, SMALL, token=TOKEN, results=results))
    page.add(crash)
    page.client.__exit__(None, None, None)
    assert results.all() == []
    page.client.__enter__()


def test_more_uploads_than_allowed_are_told_to_wait(open_page, analyzer, crash):
    go, entered = threading.Event(), threading.Semaphore(0)

    class Slow:
        def file(self, path: Path, name: str):
            entered.release()
            assert go.wait(20)
            return analyzer.file(path, name=name)

    page = open_page(build(Slow(), SMALL, token=TOKEN))  # type: ignore[arg-type]
    codes: list[int] = []
    threads = [threading.Thread(target=lambda: codes.append(page.add(crash).status_code)) for _ in range(2)]
    for one in threads:
        one.start()
    for _ in threads:
        assert entered.acquire(timeout=20)
    assert page.add(crash).status_code == 503
    assert page("GET", "logs").status_code == 200  # reading goes on meanwhile
    go.set()
    for one in threads:
        one.join(20)
    assert codes == [201, 201]
    assert page.add(crash).status_code == 201


@pytest.mark.parametrize("path", ["../app.py", "static/page.js", "%2e%2e/app.py", "..%2fapp.py", "page.js/", "app.py"])
def test_no_other_file_is_served(page, path):
    assert page("GET", path).status_code in (404, 405)


def test_an_unknown_format_or_result(page, crash):
    key = page.add(crash).json()["id"]
    assert report(page, key, format="exe").status_code == 422
    assert report(page, "nothing").status_code == 404
    assert page("PUT", "logs").status_code == 405
