"""No planted secret survives, and what the diagnosis needs does."""

import pytest

from oortriage.report.redaction import Redactor
from tests.report.redaction.planted import planted, private_key

PLANTED = planted()


def leaks(secret, text):
    """A piece of 8 characters of the secret is still there."""
    size = min(8, len(secret))
    return any(secret[start : start + size] in text for start in range(len(secret) - size + 1))


def test_there_are_enough_secrets():
    assert len({secret for secret, _ in PLANTED}) >= 200


@pytest.mark.parametrize("wrap", ["{}", "(EngineCore_0 pid=3301) ERROR 09-21 20:14:02 [core.py:700] {}", "[rank0]: {}"])
def test_no_secret_survives_on_its_own_line(wrap):
    # A name of a host at the start of a line is one only there.
    kept = [line for secret, line in PLANTED if leaks(secret, Redactor().text(line))] if wrap == "{}" else []
    if wrap != "{}":
        tokens = [(s, line) for s, line in PLANTED if any(w in line for w in ("api_key", "token", "assword", "prompt"))]
        kept = [line for secret, line in tokens if leaks(secret, Redactor().text(wrap.format(line)))]
    assert kept == []


def test_no_secret_survives_in_one_log():
    redactor = Redactor()
    text = redactor.text("\n".join(line for _, line in PLANTED))
    assert [line for secret, line in PLANTED if leaks(secret, text)] == []
    assert not any(leaks(secret, repr(redactor.replaced)) for secret, _ in PLANTED)
    assert text.count("\n") == "\n".join(line for _, line in PLANTED).count("\n")


@pytest.mark.parametrize("kind", ["RSA ", "", "OPENSSH ", "EC ", "ENCRYPTED "])
@pytest.mark.parametrize("form", ["whole", "escaped", "prefixed", "cut"])
def test_private_keys(kind, form):
    lines, key = private_key(kind)
    text = {
        "whole": f"before 1\n{key}\nafter 2",
        "escaped": 'before 1\n{"key": "' + key.replace("\n", "\\n") + '"}\nafter 2',
        "prefixed": "before 1\n"
        + "\n".join("Jun 11 19:44:51 h1 app[1]: " + line for line in key.split("\n"))
        + "\nafter 2",
        "cut": "before 1\n" + key.rsplit("\n", 2)[0] + "\nafter 2",
    }[form]
    done = Redactor().text(text)
    assert not any(leaks(line, done) for line in lines)
    assert done.count("\n") == text.count("\n")
    assert done.startswith("before 1\n")
    assert done.endswith("after 2")


KEPT = (
    "meta-llama/Llama-3.1-8B-Instruct nvcr.io/nvidia/pytorch:24.05-py3 vllm/vllm-openai:v0.10.1.1",
    "nvidia-curand-cu12==10.3.5.147 nvidia-cublas-cu12 12.4.5.8 libcudnn.so.8.9.2.26 cuDNN version 9.1.0.70 CUDA 12.4.1.0",
    "[pip3] nvidia-cufft-cu12==11.2.1.3\n[conda] libcurand                 10.3.5.119   0    nvidia",
    "Linux 5.10.16.3-microsoft-standard-WSL2",
    "0.41.118.204 I srv    load_model: loading\n1.31.140.101 I srv",
    "commit 3f2504e04f8911d39a0c0305e82c3301aabbccdd (HEAD) sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "00000000:65:00.0 busId 5d000 0000:3b:00.0",
    "http://127.0.0.1:8000 http://0.0.0.0:23333 tcp://localhost:29500 [::]:8000 ::1",
    "https://github.com/vllm-project/vllm/issues/36802 https://docs.vllm.ai/en/latest/ https://huggingface.co/meta-llama",
    "max_tokens=16 pad_token_id=0 eos_token='<|endoftext|>' num_tokens: 71 #tokens: 410213 prompt_token_ids_len=311 tokenizer='Qwen/Qwen3'",
    "token=None, api_key=None, hf_token=True, password=***, token=token, api_key=self.api_key, token: int, num_prompt_tokens: 4096",
    "Prec@1 68.750 python@3.11 y = x@w.to(dtype) + q@k.transpose(-2, -1) @torch.compile",
    "std::vector c10::cuda::CUDACachingAllocator at::native::copy_ 12:30:45 2024-05-02T17:09:41.000100Z",
    '  File "/root/miniconda3/lib/python3.12/site-packages/torch/nn/modules/module.py", line 1511, in _call_impl',
    "Avg prompt throughput: 1021.4 tokens/s, Running: 1 reqs; prompt eval time = 412.10 ms / 64 tokens",
    "threading.local self.local torch._C._internal /home/ubuntu/x.py hostname: localhost",
    "inputs=[(2, 3, 4)], prompt_token_ids: None, prompt: None, messages=[]",
    "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 147456, Hardware limit: 101376.",
    "Last login: Mon Jun 3; connected to [rank0]: step 1; failed to reach (step, 12)",
    "compilation was disabled by user settings, optimizations settings; for user defined kernels",
    "rank0: step10: worker loss 1.2; GPU0: 80GB; infer-0: prompt 115 failed",
    "hf_overrides={} hf_config_path=None sk-learn npm_config_registry task-force-of-the-12-engineers",
)  # fmt: skip


@pytest.mark.parametrize("text", KEPT)
def test_what_is_no_secret_stays(text):
    redactor = Redactor()
    assert redactor.text(text) == text
    assert redactor.replaced == []


REDACTED = {
    "INFO:     10.4.0.9:6379 ok": "INFO:     <ip-1>:6379 ok",
    "http://gpu01.acme.internal:8000/v1": "http://<host-1>:8000/v1",
    'File "/home/jane/a.py", line 3, in <module>': 'File "/home/<user-1>/a.py", line 3, in <module>',
    "vllm serve m --api-key abc123def --port 80": "vllm serve m --api-key <token-1> --port 80",
    "prompt: 'hello you', sampling_params: x": "prompt: '<prompt-1 (9 characters)>', sampling_params: x",
    "ip-10-0-0-1 and ip-10-0-0-1.ec2.internal": "<host-1> and <host-2>",
    "Connection from 3.14.15.92 port 22": "Connection from <ip-1> port 22",
    "node <host-1> is host7-a, hostname: host7-a": "node <host-1> is <host-2>, hostname: <host-2>",
}


@pytest.mark.parametrize("text", REDACTED)
def test_what_is_left(text):
    assert Redactor().text(text) == REDACTED[text]
