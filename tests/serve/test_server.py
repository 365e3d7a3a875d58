"""The socket and the command itself."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request

import pytest

from oortriage.errors import UsageError
from oortriage.serve.server import address_of, bind

DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
MAIN = [sys.executable, "-c", "from oortriage.cli.app import main; main()", "serve"]


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.1", "example.com", "", "127.0.0.1.example.com", "[::]"])
def test_only_loopback_is_bound(host):
    with pytest.raises(UsageError, match="this machine only"):
        bind(host, 0)


def test_a_taken_port_is_an_error():
    with bind("127.0.0.1", 0) as first, pytest.raises(UsageError, match="in use; --port 0"):
        bind("localhost", first.getsockname()[1])


def test_ipv6_has_brackets():
    try:
        opened = bind("[::1]", 0)
    except UsageError:
        pytest.skip("no IPv6 here")
    with opened:
        assert address_of(opened, "t").startswith("http://[::1]:")


@pytest.fixture
def command(tmp_path):
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    child = subprocess.Popen(
        [*MAIN, "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    yield child
    if child.poll() is None:
        child.kill()
    child.communicate()


def test_the_command(command, crash, tmp_path):
    address = command.stdout.readline().strip()
    assert address.startswith("http://127.0.0.1:")
    with DIRECT.open(address, timeout=20) as answer:
        assert "Drop a log" in answer.read().decode()
        assert "server" not in {name.lower() for name in answer.headers}
    sent = urllib.request.Request(f"{address}logs?name=a.log", crash, {"Content-Type": "application/octet-stream"})
    with DIRECT.open(sent, timeout=20) as answer:
        assert answer.status == 201
    with pytest.raises(urllib.error.HTTPError, match="404"):
        DIRECT.open(address[: address.index("/", 8)] + "/logs", timeout=20)
    # Ten gigabytes are refused by their announcement; none of them is read.
    host, port = address.split("/")[2].split(":")
    with socket.create_connection((host, int(port)), timeout=20) as raw:
        path = "/" + address.split("/", 3)[3] + "logs"
        head = f"POST {path} HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/octet-stream\r\n"
        raw.sendall(f"{head}Content-Length: {10 * 2**30}\r\nExpect: 100-continue\r\n\r\n".encode())
        assert raw.recv(100).startswith(b"HTTP/1.1 413")
    command.send_signal(signal.SIGINT)
    out, err = command.communicate(timeout=20)
    assert (command.returncode, out) == (0, "")
    assert err == "Ctrl-C ends it; nothing is kept.\n"
    assert list(tmp_path.iterdir()) == []


def test_refusals_are_one_line():
    done = subprocess.run([*MAIN, "--host", "0.0.0.0"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("oortriage: --host 0.0.0.0")
    assert done.stderr.count("\n") == 1
