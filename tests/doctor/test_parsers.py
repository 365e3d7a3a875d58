"""Texts of others: kernel logs, matrices, settings, version numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oortriage.doctor.allocator_options import OPTIONS, parts_of
from oortriage.doctor.checks.peer import CELLS, read_matrix
from oortriage.doctor.checks.variables import is_secret, shown
from oortriage.doctor.checks.xid import Trace, traces_of
from oortriage.doctor.versions import covers, is_consumer, is_data_center, lowest_driver, release
from oortriage.doctor.xid_table import ACTIONS, XIDS
from tests.doctor.made import Made, codes, reading, software, whole


class TestXids:
    LOG = (
        "[Mon Nov 30 01:02:03 2026] NVRM: Xid (PCI:0000:0b:00): 31, pid=123, name=python, Ch 00000008\n"
        "kernel: [ 100.5] NVRM: Xid (PCI:0000:0B:00): 31, pid=124, name=python, Ch 00000009\r\n"
        "[ 1.0] NVRM: Xid (0000:03:00): 14, Channel 00000001\n"
        "[ 2.0] NVRM: GPU at PCI:0000:3b:00: GPU-1234\n"
        "[ 3.0] NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.\n"
    )

    def test_they_are_counted_by_card_and_number(self) -> None:
        assert traces_of(self.LOG) == [
            Trace(31, "0000:0b:00", 2, "pid=124, name=python, Ch 00000009"),
            Trace(14, "0000:03:00", 1, "Channel 00000001"),
            Trace(79, "0000:3b:00", 1, "GPU has fallen off the bus."),
        ]

    def test_whose_card_it_is(self) -> None:
        found = {one.code: one for one in whole(Made(log=self.LOG)).findings}
        assert found["DR372"].subject == "GPU 0"
        assert found["DR371"].subject == "GPU at 0000:3b:00"
        assert "not seen here" in found["DR371"].message

    @pytest.mark.parametrize(
        ("wanted", "code"), [("None", "DR373"), ("GPU Reset Required", "DR371"), ("Node Reboot Required", "DR371")]
    )
    def test_the_driver_names_the_recovery(self, wanted: str, code: str) -> None:
        line = f"NVRM: Xid (PCI:0000:0b:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 ({wanted})\n"
        assert list(codes(Made(log=line))) == [code]

    def test_a_log_that_may_not_be_read(self) -> None:
        (one,) = (one for one in whole(Made(log=None)).not_checked if one.check == "xid")
        assert "not permitted" in one.reason
        assert "--dmesg FILE" in one.reason

    def test_the_table_is_whole(self) -> None:
        assert {one.action for one in XIDS.values()} <= set(ACTIONS)
        assert all(one.meaning and not one.meaning.endswith(".") for one in XIDS.values())

    @given(st.text(st.sampled_from("NVRM: Xid (PCI:0000:0b:00): 79,\n\x1b[31m\x00"), max_size=200))
    def test_any_text_is_an_answer(self, text: str) -> None:
        traces_of(text)

    def test_many_kinds_are_bounded(self) -> None:
        text = "".join(f"NVRM: Xid (PCI:0000:{number % 256:02x}:00): {number}, x\n" for number in range(5000))
        assert len(traces_of(text)) == 200


class TestMatrix:
    def test_every_letter(self) -> None:
        names = [f"GPU{number}" for number in range(len(CELLS))]
        row = "\t".join(CELLS)
        found = read_matrix("\t" + "\t".join(names) + "\n GPU0\t" + row + "\n")
        assert set(found.values()) == set(CELLS) - {"OK"}  # the first stands on the diagonal

    def test_a_table_of_no_machine_is_bounded(self) -> None:
        names = [f"GPU{number}" for number in range(600)]
        text = "\t".join(names) + "\n" + "".join(f"{name}\t" + "\t".join(["NS"] * 600) + "\n" for name in names)
        assert len(read_matrix(text)) == 128 * 127

    def test_colours_of_a_terminal(self) -> None:
        assert read_matrix("\t\x1b[4mGPU0\tGPU1\x1b[0m\n GPU0\tX\tNS\n GPU1\tNS\tX\n") == {(0, 1): "NS", (1, 0): "NS"}

    def test_the_other_matrix_of_nvidia_smi_is_none(self) -> None:
        text = "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tNV18\t0-47\t0\nGPU1\tNV18\t X \t0-47\t0\n"
        assert read_matrix(text) == {}

    @given(st.text(st.sampled_from("GPU01X \tOKNSCTU\n"), max_size=120))
    def test_any_text_is_an_answer(self, text: str) -> None:
        assert all(first != second for first, second in read_matrix(text))


class TestAllocator:
    @pytest.mark.parametrize(
        "text",
        [
            "expandable_segments:True",
            "max_split_size_mb:128, garbage_collection_threshold:0.8",
            "backend:cudaMallocAsync",
            "roundup_power2_divisions:[256:1,512:2,1024:4,>:8],max_split_size_mb:64",
            "pinned_num_register_threads:8,pinned_use_cuda_host_register:True",
            "graph_capture_record_stream_reuse:True,per_process_memory_fraction:0.5",
            "",
            ",",
        ],
    )
    def test_legal_settings(self, text: str) -> None:
        assert codes(Made(environment={"PYTORCH_CUDA_ALLOC_CONF": text})) == {}

    @pytest.mark.parametrize(
        ("text", "code"),
        [
            ("expandable_segments:true", "DR514"),
            ("expandable_segments", "DR514"),
            ("garbage_collection_threshold:1.0", "DR514"),
            ("garbage_collection_threshold:80", "DR514"),
            ("max_split_size_mb:-1", "DR514"),
            ("backend:native,max_split_size_mb:4", "DR514"),
            ("roundup_power2_divisions:3", "DR514"),
            ("roundup_power2_divisions:[256:3]", "DR514"),
            ("pinned_num_register_threads:256", "DR514"),
            ("expandable_segments=True", "DR513"),
            ("cudaMallocAsync", "DR513"),
            ("throw_on_cudamalloc_oom:True", "DR513"),  # newer than 2.11
        ],
    )
    def test_illegal_ones(self, text: str, code: str) -> None:
        assert list(codes(Made(environment={"PYTORCH_CUDA_ALLOC_CONF": text}))) == [code]

    def test_a_name_nearly_right(self) -> None:
        (one,) = whole(Made(environment={"PYTORCH_CUDA_ALLOC_CONF": "expandable_segment:True"})).findings
        assert one.remedy == "did you mean expandable_segments?"

    def test_a_torch_newer_than_the_table_is_not_judged(self) -> None:
        newer = software("3.1.0+cu140", "13.0", versions={"vllm": "9.9"}, requires={})
        found = whole(Made(environment={"PYTORCH_ALLOC_CONF": "brand_new:1"}, installed=newer))
        assert found.findings == ()
        assert any("brand_new" in one.what for one in found.not_checked)

    def test_an_option_newer_than_the_torch(self) -> None:
        older = software("2.8.0+cu128", "12.8", versions={"vllm": "0.11.0", "triton": "3.4.0"}, requires={})
        found = codes(Made(environment={"PYTORCH_CUDA_ALLOC_CONF": "per_process_memory_fraction:0.5"}, installed=older))
        assert "from torch 2.10 on, here is 2.8" in found["DR513"]

    @given(st.text(st.sampled_from("abc:,[]>=TrueFalse0129. _-\n"), max_size=60))
    def test_any_text_is_an_answer(self, text: str) -> None:
        for name, value in parts_of(text):
            if name in OPTIONS:
                OPTIONS[name].legal(value)
        for option in OPTIONS.values():
            option.legal(text)


class TestVariables:
    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("VLLM_API_KEY", "letmein-1"),
            ("NVIDIA_NGC_TOKEN", "ngc-word-7"),
            ("VLLM_S3_SECRET", "bucket-word"),
            ("NCCL_PASSWORD", "swordfish"),
            ("VLLM_PROXY", "http://jane:pw@proxy:3128"),
            ("VLLM_OTHER", "hf_abcdefghijklmnopqrstuvwxyz012345"),
        ],
    )
    def test_secrets_are_never_shown(self, name: str, value: str) -> None:
        assert shown({name: value}) == {name: "(set, not shown)"}
        assert value not in str(whole(Made(environment={name: value})).facts)

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("VLLM_LOGGING_LEVEL", "DEBUG"),
            ("LD_LIBRARY_PATH", "/usr/local/cuda-13.0/lib64:/usr/lib/x86_64-linux-gnu"),
            ("CUDA_VISIBLE_DEVICES", "GPU-4f3c8a1e-0000-1111-2222-333344445555"),
            ("NCCL_SOCKET_IFNAME", "eth0"),
            ("TRITON_CACHE_DIR", "/tmp/triton"),
        ],
    )
    def test_what_is_none_is_shown(self, name: str, value: str) -> None:
        assert shown({name: value, "HOME": "/root"}) == {name: value}

    def test_noise_is_left_out(self) -> None:
        assert shown({"NVIDIA_REQUIRE_CUDA": "cuda>=13.0 brand=unknown", "NVIDIA_VISIBLE_DEVICES": "0"}) == {
            "NVIDIA_VISIBLE_DEVICES": "0"
        }

    @given(st.text(min_size=1, max_size=12), st.sampled_from(["KEY", "TOKEN", "SECRET", "PASSWORD", "AUTH"]))
    def test_a_telling_name_hides_any_value(self, value: str, word: str) -> None:
        assert is_secret(f"VLLM_{word}_X", value)


class TestVersions:
    @pytest.mark.parametrize(
        ("text", "numbers"), [("13.0", (13, 0)), ("580.95.05", (580, 95, 5)), ("", ()), ("x", ()), ("12", (12,))]
    )
    def test_release(self, text: str, numbers: tuple[int, ...]) -> None:
        assert release(text) == numbers

    @pytest.mark.parametrize(
        ("entries", "capability", "reach"),
        [
            ("sm_75 sm_80 sm_86 sm_90", (8, 6), "native"),
            ("sm_75 sm_80 sm_90", (8, 9), "same_family"),
            ("sm_80 sm_90", (7, 5), "no"),
            ("sm_86", (8, 0), "no"),
            ("sm_80 sm_90", (12, 0), "no"),
            ("sm_80 compute_90", (12, 0), "jit"),
            ("compute_90", (9, 0), "jit"),
            ("sm_90a", (9, 0), "native"),
            ("sm_100a", (10, 3), "no"),
            ("sm_100f", (10, 3), "same_family"),
            ("compute_90a", (10, 0), "no"),
            ("sm_100", (10, 0), "native"),
            ("nonsense sm_", (9, 0), "no"),
            ("", (9, 0), "no"),
        ],
    )
    def test_how_a_build_reaches_a_card(self, entries: str, capability: tuple[int, int], reach: str) -> None:
        assert covers(tuple(entries.split()), capability) == reach

    @pytest.mark.parametrize(
        ("name", "centre", "consumer"),
        [
            ("NVIDIA H100 80GB HBM3", True, False),
            ("Tesla T4", True, False),
            ("NVIDIA A10G", True, False),
            ("NVIDIA L40S", True, False),
            ("NVIDIA GeForce RTX 4090", False, True),
            ("NVIDIA TITAN RTX", False, True),
            ("NVIDIA RTX A6000", False, False),
            ("NVIDIA A1000 Laptop GPU", False, False),
        ],
    )
    def test_families_of_cards(self, name: str, centre: bool, consumer: bool) -> None:
        assert (is_data_center(name), is_consumer(name)) == (centre, consumer)

    def test_lowest_drivers(self) -> None:
        assert [lowest_driver(text) for text in ("13.0", "12.8", "11.8", "10.2", "")] == [
            "580",
            "525",
            "450.80.02",
            "",
            "",
        ]


class TestPackages:
    def test_markers_are_those_of_the_other_interpreter(self) -> None:
        requires = {"torch": ('triton==9.9; python_version < "3.12"', 'triton==9.9; sys_platform == "win32"')}
        assert codes(Made(installed=software(requires=requires))) == {}

    def test_extras_that_nobody_asked_for_do_not_count(self) -> None:
        assert codes(Made(installed=software(requires={"vllm": ('torch==1.0; extra == "old"',)}))) == {}

    def test_the_older_form_of_a_requirement(self) -> None:
        found = codes(Made(installed=software(requires={"torch": ("triton (==3.0.0)",)})))
        assert found == {"DR701": "torch 2.11.0 asks for triton==3.0.0; 3.6.0 is installed"}

    @pytest.mark.parametrize("there", ["0.6.1", "0.6.1+cu130"])
    def test_parts_of_one_release_fit(self, there: str) -> None:
        versions = {"flashinfer-python": "0.6.1", "flashinfer-jit-cache": there, "flashinfer-cubin": there}
        assert codes(Made(installed=software(versions=versions))) == {}

    def test_a_beginning_is_not_the_same_release(self) -> None:
        versions = {"flashinfer-python": "0.6.1", "flashinfer-cubin": "0.6.10"}
        assert list(codes(Made(installed=software(versions=versions)))) == ["DR706"]
        off = {"FLASHINFER_DISABLE_VERSION_CHECK": "1"}
        assert codes(Made(installed=software(versions=versions), environment=off)) == {}

    def test_a_local_version_fits_its_pin(self) -> None:
        assert codes(Made(installed=software(versions={"torch": "2.11.0+cu130"}))) == {}

    @pytest.mark.parametrize("text", ["", "###", "torch==", "torch>=not.a.version!", "x" * 500 + " ="])
    def test_a_requirement_that_cannot_be_read(self, text: str) -> None:
        found = whole(Made(installed=software(requires={"vllm": (text,)})))
        assert found.findings == ()
        assert any(one.check == "packages" for one in found.not_checked)

    def test_a_version_that_cannot_be_read(self) -> None:
        found = whole(Made(installed=software(versions={"triton": "not a version"})))
        assert any("triton" in one.reason for one in found.not_checked)


def test_an_unreadable_card_is_said() -> None:
    from tests.doctor.made import h100
    from tests.gpu.fake_nvml import NVMLError

    found = codes(Made(nvml=reading(h100(), NVMLError(15, "GPU is lost"))))
    assert set(found) == {"DR111", "DR305"}
