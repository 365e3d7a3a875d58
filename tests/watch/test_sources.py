"""Reading the driver, /proc and control groups, and vLLM's endpoint, with stand-ins for all three."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oortriage.errors import UsageError
from oortriage.gpu.nvml_trouble import Unavailable
from oortriage.watch.sample import Settings
from oortriage.watch.sources.engine import EngineSource, parse
from oortriage.watch.sources.host import HostSource
from oortriage.watch.sources.nvml import NvmlSource, missing, open_nvml
from oortriage.watch.sources.sampler import Sampler
from oortriage.watch.start import NothingToWatchError, open_sampler, settings_of
from tests.gpu.fake_nvml import GIB, FakeNvml, NVMLError, card, cut, memory, process

UNKNOWN = (1 << 64) - 1


def opened(nvml: FakeNvml, *wanted: str) -> NvmlSource:
    source = open_nvml(list(wanted), nvml)
    assert isinstance(source, NvmlSource)
    return source


def test_devices_and_who_holds_their_memory() -> None:
    nvml = FakeNvml(
        card(ComputeRunningProcesses=[process(8, GIB), process(9, UNKNOWN)], GraphicsRunningProcesses=[process(8, 2)])
    )
    nvml.names[8] = b"/opt/bin/python3 -m vllm"
    source = opened(nvml)
    (one,), problems = source.read()
    assert (one.label, one.total_bytes, one.used_bytes, one.free_bytes, problems) == ("0", 16 * GIB, GIB, 15 * GIB, [])
    first = one.processes[0]
    assert (first.pid, first.name, first.used_bytes) == (8, "python3", GIB)
    assert one.processes[1].used_bytes is None
    source.close()
    assert nvml.open == 0


def test_a_card_that_is_cut_up_is_its_instances() -> None:
    assert opened(FakeNvml(cut(0), card(1))).labels == ["0:0", "0:1", "1"]
    assert opened(FakeNvml(cut(0), card(1)), "0").labels == ["0:0", "0:1"]


def test_devices_are_chosen_by_number_and_uuid() -> None:
    nvml = FakeNvml(card(0), card(1), card(2))
    source = opened(nvml, "2", "GPU-00000000-aaaa", "7")
    assert source.labels == ["0", "2"]
    assert missing(source, ["2", "7"]) == ["7"]


def test_a_card_that_is_lost_meanwhile_is_a_problem_and_the_other_goes_on() -> None:
    lost = card(0)
    source = opened(FakeNvml(lost, card(1)))
    lost["MemoryInfo"] = NVMLError(15, "GPU is lost")
    lost["ComputeRunningProcesses"] = NVMLError(15, "GPU is lost")
    (first, second), problems = source.read()
    assert (first.used_bytes, second.used_bytes) == (None, GIB)
    assert problems == ["GPU 0: memory: GPU is lost", "GPU 0: processes: GPU is lost"]


def test_what_a_card_does_not_support_is_asked_once() -> None:
    one = card(0, GraphicsRunningProcesses=NVMLError(3))
    source = opened(FakeNvml(one))
    assert source.read()[1] == []
    one["GraphicsRunningProcesses"] = [process(8, GIB)]
    assert source.read()[0][0].processes == ()


def test_no_driver_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(open_nvml([], FakeNvml(nvmlInit=NVMLError(9))), Unavailable)
    assert isinstance(open_nvml([], FakeNvml()), Unavailable)
    monkeypatch.setattr("oortriage.gpu.nvml_trouble.sys.platform", "darwin")
    assert isinstance(open_nvml([]), Unavailable)


STATUS = "Name:\t{name}\nUmask:\t0022\nVmRSS:\t  {rss} kB\nRssAnon:\t  {anon} kB\nRssFile:\t 1 kB\nVmSwap:\t 5 kB\n"


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    """A /proc with a parent 10, its child 11 and grandchild 12 (with an unpleasant name), and a stranger 20."""
    for pid, parent, name in ((10, 1, "vllm"), (11, 10, "EngineCore"), (12, 11, "a) 7 (b"), (20, 1, "other")):
        folder = tmp_path / "proc" / str(pid)
        folder.mkdir(parents=True)
        (folder / "status").write_text(STATUS.format(name=name, rss=2000 * pid, anon=1000 * pid))
        (folder / "stat").write_text(f"{pid} ({name}) S {parent} 1 1 0\n")
        (folder / "comm").write_text(f"{name}\n")
        (folder / "cmdline").write_bytes(f"/usr/bin/{name}\0serve\0".encode())
        (folder / "cgroup").write_text("0::/pods/one\n")
    return tmp_path


def limits(folder: Path, used: int, limit: str, cache: int = 0, kills: int = 0) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "memory.current").write_text(f"{used}\n")
    (folder / "memory.max").write_text(f"{limit}\n")
    (folder / "memory.stat").write_text(f"anon 1\nfile 2\ninactive_file {cache}\nactive_file 3\n")
    (folder / "memory.events").write_text(f"low 0\noom 1\noom_kill {kills}\noom_group_kill 9\n")


def host(kernel: Path) -> HostSource:
    return HostSource(kernel / "proc", kernel / "cgroup")


def test_main_memory_and_the_group_with_the_nearest_limit(kernel: Path) -> None:
    limits(kernel / "cgroup", 0, "max")
    limits(kernel / "cgroup/pods", 6000, "8000", cache=500, kills=2)
    limits(kernel / "cgroup/pods/one", 4000, "max")
    (one, two), (group,) = host(kernel).read([10, 12, 99])
    assert (one.pid, one.name, one.anonymous_bytes, one.resident_bytes, one.swap_bytes) == (
        10, "vllm", 10_000 * 1024, 20_000 * 1024, 5 * 1024,
    )  # fmt: skip
    assert two.name == "a) 7 (b"
    assert (group.path, group.used_bytes, group.working_set_bytes, group.limit_bytes, group.oom_kills) == (
        "/pods", 6000, 5500, 8000, 2,
    )  # fmt: skip
    assert one.group == "/pods"


def test_in_a_container_the_group_is_at_the_root(kernel: Path) -> None:
    limits(kernel / "cgroup", 100, "200")
    assert [one.path for one in host(kernel).read([10])[1]] == ["/"]


def test_version_1(kernel: Path) -> None:
    (kernel / "proc/10/cgroup").write_text("9:name=systemd:/\n4:memory:/docker/x\n0::/\n")
    folder = kernel / "cgroup/memory/docker/x"
    folder.mkdir(parents=True)
    (folder / "memory.usage_in_bytes").write_text("900\n")
    (folder / "memory.limit_in_bytes").write_text("1000\n")
    (folder / "memory.stat").write_text("cache 1\ninactive_file 7\ntotal_inactive_file 100\n")
    (folder / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 4\n")
    (group,) = host(kernel).read([10])[1]
    assert (group.path, group.working_set_bytes, group.limit_bytes, group.oom_kills) == ("/docker/x", 800, 1000, 4)
    (folder / "memory.limit_in_bytes").write_text("9223372036854771712\n")
    assert host(kernel).read([10])[1] == []


def test_children_are_found_whatever_they_are_called(kernel: Path) -> None:
    assert host(kernel).with_children([10]) == [10, 11, 12]
    assert host(kernel).with_children([20, 77]) == [20, 77]


def test_a_number_of_the_hosts_is_not_taken_for_one_of_ours(kernel: Path) -> None:
    (kernel / "proc/self/ns").mkdir(parents=True)
    (kernel / "proc/self/ns/pid").symlink_to("pid:[4026532222]")
    assert host(kernel).is_same(10, "vllm")
    assert not host(kernel).is_same(10, "python3")
    assert not host(kernel).is_same(10, "")
    (kernel / "proc/self/ns/pid").unlink()
    (kernel / "proc/self/ns/pid").symlink_to("pid:[4026531836]")
    assert host(kernel).is_same(10, "python3")


@settings(max_examples=40, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_in_these_files_are_read_or_left_out(content: bytes) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "proc/10"
        folder.mkdir(parents=True)
        for file in ("status", "stat", "cgroup", "comm", "cmdline"):
            (folder / file).write_bytes(content)
        source = HostSource(Path(name) / "proc", Path(name) / "cgroup")
        source.read([10])
        source.with_children([10])
        source.is_same(10, "x")


OLD = """# HELP vllm:gpu_cache_usage_perc GPU KV-cache usage. 1 means 100 percent usage.
# TYPE vllm:gpu_cache_usage_perc gauge
vllm:gpu_cache_usage_perc{engine="0",model_name="m"} 0.5
# TYPE vllm:num_preemptions_total counter
vllm:num_preemptions_total{engine="0",model_name="m"} 7.0
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 3.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="m"} 2.0
"""
NEW = """# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25
vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.97
# TYPE vllm:gpu_cache_usage_perc gauge
vllm:gpu_cache_usage_perc{engine="0",model_name="m"} 0.1
# TYPE vllm:num_preemptions counter
vllm:num_preemptions_total{engine="0",model_name="m"} 7.0
vllm:num_preemptions_total{engine="1",model_name="m"} 5.0
# TYPE vllm:num_preemptions_created gauge
vllm:num_preemptions_created{engine="0",model_name="m"} 1.7e9
"""


def test_vllms_metrics_under_their_old_and_new_names() -> None:
    old = parse(OLD)
    assert (old.kv_usage, old.preemptions, old.running, old.waiting) == (0.5, 7, 3, 2)
    new = parse(NEW)
    assert (new.kv_usage, new.preemptions, new.running, new.waiting) == (0.97, 12, None, None)


@pytest.mark.parametrize("text", ["", "<html>", "vllm:kv_cache_usage_perc NaN\n", "other_metric 1\n", "\x00{}{{"])
def test_what_is_none_of_vllms_is_a_problem(text: str) -> None:
    load = parse(text)
    assert load.problem
    assert load.kv_usage is None


@settings(max_examples=40, deadline=None)
@given(st.text(max_size=200), st.sampled_from(["vllm:kv_cache_usage_perc", "vllm:num_preemptions_total", "x"]))
def test_any_text_is_a_reading_or_a_problem(text: str, name: str) -> None:
    for one in (text, f"{name} {text}", f"{name}{{{text}}} 1"):
        assert parse(one) is not None


class _Engine(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = {"/metrics": OLD, "/huge": "x" * (9 << 20)}.get(self.path)
        self.send_response(200 if body else 302)
        self.send_header("Location", "http://127.0.0.1:1/")
        self.end_headers()
        if body:
            self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def engine() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Engine)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_the_endpoint_is_asked_directly(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert EngineSource(engine).read().kv_usage == 0.5
    assert EngineSource(f"{engine}/metrics").read().kv_usage == 0.5


def test_a_redirect_a_flood_and_silence_are_problems(engine: str) -> None:
    assert "does not answer" in EngineSource(f"{engine}/elsewhere").read().problem
    assert "8 MiB" in EngineSource(f"{engine}/huge").read().problem
    assert "does not answer" in EngineSource("http://127.0.0.1:1/metrics").read().problem


@pytest.mark.parametrize("url", ["file:///etc/passwd", "localhost:8000", "http://", "ftp://x/metrics", ""])
def test_only_http_is_asked(url: str) -> None:
    with pytest.raises(UsageError, match="--metrics"):
        EngineSource(url)


def test_a_sample_holds_the_family_of_the_processes_asked_for(kernel: Path) -> None:
    now = [100.0]
    sampler = Sampler(None, host(kernel), None, [10], clock=lambda: now[0], wall=lambda: 1000.0)
    sample = sampler.read()
    assert (sample.time_s, sample.family) == (1000.0, (10, 11, 12))
    assert [one.pid for one in sample.hosts] == [10, 11, 12]
    now[0] = 107.5
    assert sampler.read().time_s == 1007.5


def test_without_them_those_on_the_devices_are_read(kernel: Path) -> None:
    nvml = FakeNvml(card(ComputeRunningProcesses=[process(10, GIB), process(4444, GIB)]))
    nvml.names[10] = "/usr/bin/vllm"
    sampler, notes = open_sampler(Settings(), [], "", nvml, host(kernel))
    assert ([one.pid for one in sampler.read().hosts], notes) == ([10], [])


def test_without_a_device_a_process_can_still_be_watched(kernel: Path) -> None:
    gone = FakeNvml(nvmlInit=NVMLError(9))
    _, (note,) = open_sampler(Settings(pids=(10,)), [], "", gone, host(kernel))
    assert note.startswith("device memory is not watched: NVIDIA's driver is not loaded")
    with pytest.raises(NothingToWatchError, match="--pid or --metrics") as told:
        open_sampler(Settings(), [], "", gone)
    assert told.value.exit_code == 3


def test_a_process_that_is_not_there_is_told(kernel: Path) -> None:
    _, (note,) = open_sampler(Settings(pids=(10, 77)), [], "", FakeNvml(card()), host(kernel))
    assert note == "process 77 is not in /proc: its main memory is not read"
    with pytest.raises(NothingToWatchError, match="process 77 is not in /proc"):
        open_sampler(Settings(pids=(77,)), [], "", FakeNvml(nvmlInit=NVMLError(9)), host(kernel))


def test_a_device_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(UsageError, match="--gpu 5: no such device; there are 0, 1"):
        open_sampler(Settings(), ["5"], "", FakeNvml(card(0), card(1)))


def test_memory_that_the_driver_does_not_tell() -> None:
    (one,), _ = opened(FakeNvml(card(MemoryInfo=memory(UNKNOWN, UNKNOWN, UNKNOWN)))).read()
    assert (one.total_bytes, one.used_bytes, one.free_bytes) == (None, None, None)


@pytest.mark.parametrize(
    ("wanted", "interval", "window"),
    [
        ({}, 5, 600),
        ({"window_s": 60.0}, 1, 60),
        ({"window_s": 3600.0}, 5, 3600),
        ({"interval_s": 60.0}, 60, 3600),
        ({"interval_s": 1.0}, 1, 600),
        ({"interval_s": 2.0, "window_s": 60.0}, 2, 60),
    ],
)
def test_interval_and_window_follow_each_other(wanted: dict[str, float], interval: float, window: float) -> None:
    found = settings_of(None, wanted)
    assert (found.interval_s, found.window_s) == (interval, window)


def test_a_window_of_too_few_samples_is_refused() -> None:
    with pytest.raises(UsageError, match="fewer than 15 samples"):
        settings_of(None, {"interval_s": 10.0, "window_s": 60.0})


def test_a_replay_keeps_what_was_recorded() -> None:
    recorded = Settings(1.0, 30.0, 5, 6.0, (7,))
    assert settings_of(recorded, {"window_s": None, "horizon_s": 9.0}) == Settings(1.0, 30.0, 5, 9.0, (7,))
