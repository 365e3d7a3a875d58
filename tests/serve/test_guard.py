"""Whom the server answers, and what stands on every answer."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from oortriage.serve.guard import Guard, is_loopback

from .conftest import RAW, TOKEN

HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
FILES = ("", "page.js", "page.css", "icon.svg")


@pytest.mark.parametrize(
    "path", [f"/{TOKEN}/{one}" for one in (*FILES, "logs", "nothing", "logs/x/report")] + ["/", "/x/"]
)
def test_every_answer_has_the_headers(page, path):
    answer = page.client.get(path)
    for name, value in HEADERS.items():
        assert answer.headers[name] == value, name
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert "script-src 'self'" in policy


@pytest.mark.parametrize(
    "path", ["/", "/x", "/x/logs", f"/{TOKEN}x/", f"/{TOKEN[:-1]}/", "//", "/open/x", "/%ff%fe/", "/é/"]
)
def test_without_the_token_there_is_nothing(page, path):
    answer = page.client.get(path)
    assert answer.status_code == 404
    assert TOKEN not in answer.text


def test_the_token_alone_leads_to_the_page(page):
    answer = page.client.get(f"/{TOKEN}")
    assert (answer.status_code, answer.headers["location"]) == (307, f"/{TOKEN}/")


def test_the_pages_files_hold_no_inline_script_and_name_no_other_host(page):
    for name in FILES:
        answer = page("GET", name)
        assert answer.status_code == 200
        text = answer.text.replace("http://www.w3.org/2000/svg", "")
        assert "http://" not in text
        assert "https://" not in text
        assert " style=" not in text
        assert " onclick" not in text
        assert "innerHTML" not in text


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1:8765", "localhost:8765", "localhost", "LOCALHOST:1", "[::1]:8765", "127.8.9.10:80"],
)
def test_loopback_names_are_answered(page, host):
    assert page.client.get(f"/{TOKEN}/", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example:8765",
        "localhost.evil.example:8765",
        "127.0.0.1.nip.io",
        "192.168.0.7:8765",
        "0.0.0.0:8765",
        "user@localhost:8765",
        "localhost:8765@evil.example",
        "localhost:port",
        "localhost/evil",
        "localhost#evil",
        "[::2]:8765",
        "",
        "2130706433",
    ],
)
def test_a_rebound_name_is_refused(page, host):
    answer = page.client.get(f"/{TOKEN}/", headers={"host": host})
    assert answer.status_code == 403


@pytest.mark.anyio
async def test_two_hosts_or_none_are_refused():
    async def never(*_):
        raise AssertionError("reached")

    async def ask(hosts):
        sent = []

        async def send(message):
            sent.append(message)

        scope = {"type": "http", "method": "GET", "path": "/t/", "headers": [(b"host", one) for one in hosts]}
        await Guard(never, "t")(scope, never, send)
        return sent[0]["status"]

    assert await ask([]) == 403
    assert await ask([b"localhost", b"evil.example"]) == 403


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9999"},
        {"origin": "https://127.0.0.1:8765"},
        {"origin": "http://localhost:8765"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "none"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"},
    ],
)
@pytest.mark.parametrize(("method", "path"), [("POST", "logs"), ("DELETE", "logs/x"), ("POST", "logs/x/experiment")])
def test_another_site_changes_nothing(page, headers, method, path):
    answer = page.client.request(method, f"/{TOKEN}/{path}", headers={**RAW, **headers}, content=b"x")
    assert answer.status_code == 403
    assert page("GET", "logs").json()["logs"] == []


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "script"},
        {"sec-fetch-site": "same-site", "sec-fetch-mode": "cors", "sec-fetch-dest": "empty"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe"},
    ],
)
def test_another_site_reads_nothing(page, headers):
    for path in ("", "page.js", "logs"):
        assert page.client.get(f"/{TOKEN}/{path}", headers=headers).status_code == 403


def test_a_person_may_follow_a_link_or_type_the_address(page):
    navigates = {"sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    for site in ("none", "cross-site"):
        assert page.client.get(f"/{TOKEN}/", headers={"sec-fetch-site": site, **navigates}).status_code == 200


def test_no_answer_lets_other_origins_in(page):
    preflight = {"origin": "http://evil.example", "access-control-request-method": "POST"}
    answer = page.client.options(f"/{TOKEN}/logs", headers=preflight)
    assert answer.status_code == 403
    assert not [name for name in page("GET", "logs").headers if name.startswith("access-control")]


def test_a_ticket_opens_once(guard, page):
    once = guard.ticket()
    first = page.client.get(once)
    assert (first.status_code, first.headers["location"]) == (303, f"/{TOKEN}/")
    assert page.client.get(once).status_code == 404


def test_a_failure_inside_is_one_line_and_no_traceback(capsys):
    async def broken(*_):
        raise RuntimeError("secret\nsecond \x1b[31m line")

    client = TestClient(Guard(broken, TOKEN), base_url="http://127.0.0.1:8765")
    answer = client.get(f"/{TOKEN}/")
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert answer.headers["x-content-type-options"] == "nosniff"
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "\x1b" not in said


@pytest.mark.parametrize(
    ("host", "wanted"),
    [
        ("localhost", True),
        ("127.1.2.3", True),
        ("::1", True),
        ("0.0.0.0", False),
        ("", False),
        ("10.0.0.1", False),
        ("::", False),
        ("example.com", False),
    ],
)
def test_loopback(host, wanted):
    assert is_loopback(host) is wanted
