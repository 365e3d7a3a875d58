"""Each kind of file: what is found in it, on which line, and for which release."""

from __future__ import annotations

import textwrap

import pytest

from oortriage.errors import InputError
from oortriage.lint.inputs.detect import LARGEST, read_document
from oortriage.lint.inputs.expand import expand, without_outputs
from tests.lint.linting import codes, findings, lines, result

SCRIPT = r"""
#!/bin/bash
# don't touch
export VLLM_LOG_LEVEL=debug   # it's old
BS=64
if true; then
  vllm serve "$MODEL" \
    --block-size $BS \
    --kv-cache-dtype 'fp8' > "log file" 2>&1 &
fi
cat <<EOF
vllm serve m --nonsense-in-a-document
EOF
echo "run vllm serve m --nonsense-that-is-printed"
bash -c "vllm serve m --nonsense-inside"
unset VLLM_LOG_LEVEL
"""


def test_a_script_s_findings_have_their_lines() -> None:
    assert lines(SCRIPT.strip("\n"), "0.6.3", "run.sh") == [
        (3, "LT507", "VLLM_LOG_LEVEL"),
        (7, "LT301", "--block-size 64"),
        (14, "LT101", "--nonsense-inside"),
    ]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("ARGS=(--block-size 64)\nvllm serve m ${ARGS[@]}", ["--block-size 64"]),
        ('ARGS=(\n  --block-size 64  # why\n  --foo "a b"\n)\nvllm serve m "${ARGS[@]}"', ["--block-size 64", "--foo"]),
        ("A='--block-size 64 --foo'\nvllm serve m $A ${EXTRA:-}", ["--foo", "--block-size 64"]),
        ("vllm serve m --block-size ${BS:-64}", ["--block-size 64"]),
        ("vllm serve m --block-size ${BS}", []),
        ("vllm serve m --block-size $(cat size) --foo", ["--foo"]),
        ("vllm serve m --block-size `cat size` --foo", ["--foo"]),
        ("vllm serve m --block-size=64 && vllm serve n --foo; vllm serve o --bar", ["--foo", "--bar", "--block-size 64"]),
        ("nohup env A=1 /opt/bin/vllm serve m --foo &", ["--foo"]),
        ("exec python3 -u -m vllm.entrypoints.openai.api_server --model m --foo", ["--foo"]),
        ("uv run vllm serve m --foo", ["--foo"]),
        ("docker run --gpus all -p 8000:8000 vllm/vllm-openai:latest --model m --foo", ["--foo"]),
        ("docker run --env VLLM_NONSENSE=1 -e VLLM_NONSENSE2=2 x/vllm-openai m", ["VLLM_NONSENSE", "VLLM_NONSENSE2"]),
        ("docker pull vllm/vllm-openai:latest --foo", []),
        ("ssh host 'VLLM_NONSENSE=1 vllm serve m --foo'", ["--foo", "VLLM_NONSENSE"]),
        ("X=1\nif [ $X = 1 ]; then vllm serve m --foo; fi", ["--foo"]),
        ("vllm bench serve --foo 1", []),
        ("grep -r 'vllm serve m --foo' .", []),
        ("VLLM_NONSENSE=1\nexport VLLM_NONSENSE\nvllm serve m", ["VLLM_NONSENSE"]),
        ("VLLM_NONSENSE=1\nvllm serve m", []),
        ("source x\nexport VLLM_NONSENSE=1", ["VLLM_NONSENSE"]),
        ("export VLLM_NONSENSE=1\nunset VLLM_NONSENSE\nvllm serve m", []),
        ("vllm serve m --kv_transfer-config '{\"a\": \"b c\"}' -- extra", ["extra"]),
        ("vllm serve m --foo=a=b --block_size=64", ["--foo", "--block-size 64"]),
        ("vllm serve m '", []),
        ("pkill -9 -f 'vllm serve --foo'", []),
        ("[[ $x == *'vllm serve --foo'* ]] && vllm serve m --bar", ["--bar"]),
    ],
)  # fmt: skip
def test_shell_is_read_as_a_shell_reads_it(text: str, found: list[str]) -> None:
    shown = [
        one.subject
        for one in findings(text, "0.6.5", "a.sh")
        if one.code != "LT104" and one.subject != "--kv_transfer-config"
    ]
    assert shown == found


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("docker run vllm/vllm-openai:v0.6.3.post1 --model m", "0.6.3.post1"),
        ("docker run mirror:5000/vllm/vllm-openai:v0.8.5-cu121@sha256:0ab --model m", "0.8.5"),
        ("pip install 'vllm==0.9.2'\nvllm serve m", "0.9.2"),
        ("pip install vllm[video]==0.10.0\nvllm serve m", "0.10.0"),
        ("docker run vllm/vllm-openai:nightly --model m", "0.33.0"),
        ("docker run vllm/vllm-openai:$TAG --model m", "0.33.0"),
    ],
)
def test_an_input_may_name_its_release(text: str, version: str) -> None:
    assert result(text, "", "a.sh").inputs[0].vllm == version
    assert result(text, "0.17.1", "a.sh").inputs[0].vllm == "0.17.1"


def test_several_releases_are_told() -> None:
    (one,) = result("pip install vllm==0.9.2\npip install vllm==0.10.0\nvllm serve m", "", "a.sh").inputs
    assert (one.vllm, "0.9.2, 0.10.0" in one.notes[0]) == ("0.10.0", True)


WRAPPED = r"""
start() {
  local extra="$1"
  local serve="${PREFIX} VLLM_USE_V1=1 \
    vllm serve ${MODEL} ${DTYPE} --foo ${extra} > ${LOG} 2>&1"
  setsid bash -c "${serve}" &
  local -a cmd=(
    "${PYTHON}"
    -m
    vllm.entrypoints.openai.api_server
    --bar "${port}"
  )
  local -a more=()
  read -r -a more <<< "${extra_args}"
  cmd+=("${more[@]}")
  nohup env CUDA_VISIBLE_DEVICES="${gpu}" "${cmd[@]}" > log 2>&1 &
  "${VLLM_CLI}" serve "${M}" --baz
}
export MODEL=x \
#VLLM_LOGGING_LEVEL=DEBUG \
uv run vllm serve $MODEL --qux
"""


def test_commands_are_found_in_variables_arrays_and_after_a_comment_that_ends_one() -> None:
    assert lines(WRAPPED.strip("\n"), "0.22.1", "serve.sh") == [
        (5, "LT101", "--foo"),
        (5, "LT202", "VLLM_USE_V1"),
        (10, "LT101", "--bar"),
        (16, "LT101", "--baz"),
        (20, "LT101", "--qux"),
    ]


def test_a_command_is_judged_by_its_own_image() -> None:
    text = "docker run vllm/vllm-openai:v0.6.3 --model m {0}\ndocker run vllm/vllm-openai:v0.17.1 --model m {0}\n"
    assert lines(text.format("--block-size 64"), "", "a.sh") == [(1, "LT301", "--block-size 64")]
    assert lines(text.format("--attention-backend X"), "", "a.sh") == [(1, "LT103", "--attention-backend")]
    assert len(lines(text.format("--block-size 64"), "0.6.3", "a.sh")) == 2


def test_an_image_without_a_release_is_not_judged_by_another_one_s() -> None:
    text = (
        "docker run vllm/vllm-openai:v0.6.3 --model m --swap-space 4\n"
        "docker run vllm/vllm-openai:latest --model m --swap-space 4\n"
    )
    assert lines(text, "", "a.sh") == [(2, "LT102", "--swap-space")]
    assert "names no release" in result(text, "", "a.sh").inputs[0].notes[0]


def test_what_a_script_exports_stays_outside_a_container() -> None:
    text = "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True\n{} --model m --enable-sleep-mode\n"
    assert codes(text.format("docker run vllm/vllm-openai:v0.17.1"), "", "a.sh") == []
    assert codes(text.format("python -m vllm.entrypoints.openai.api_server"), "0.17.1", "a.sh") == ["LT401"]


DOCKERFILE = r"""
# syntax=docker/dockerfile:1
ARG V=v0.10.2
FROM vllm/vllm-openai:${V}
ENV VLLM_NONSENSE=1 \
    # a comment between
    B="c d"
ENV OLD style
RUN pip install x && VLLM_PROFILE_MEMORY=1 vllm serve m --foo
CMD ["--model", "m", "--block-size", "256"]
"""


def test_a_dockerfile() -> None:
    assert lines(DOCKERFILE.strip("\n"), "", "Dockerfile") == [
        (4, "LT201", "VLLM_NONSENSE"),
        (8, "LT101", "--foo"),
        (8, "LT502", "VLLM_PROFILE_MEMORY"),
        (9, "LT301", "--block-size 256"),
    ]
    assert result(DOCKERFILE, "", "Dockerfile").inputs[0].vllm == "0.10.2"


@pytest.mark.parametrize(
    ("tail", "found"),
    [
        ('ENTRYPOINT ["vllm", "serve"]\nCMD ["m", "--foo"]', ["--foo"]),
        ("ENTRYPOINT vllm serve m --foo", ["--foo"]),
        ("CMD vllm serve m --foo", ["--foo"]),
        ('CMD ["sleep", "1"]', []),
        ("RUN <<EOF\nvllm serve m --foo\nEOF", ["--foo"]),
    ],
)
def test_what_a_container_starts(tail: str, found: list[str]) -> None:
    assert [one.subject for one in findings(f"FROM ubuntu:24.04\n{tail}\n", "0.17.1", "Containerfile")] == found


COMPOSE = """
x-env: &env
  VLLM_USE_V1: "0"
services:
  one:
    image: vllm/vllm-openai:v0.17.1
    environment:
      <<: *env
      PYTORCH_CUDA_ALLOC_CONF: expandable_segments:True
      FROM_OUTSIDE:
    command: >
      --model m --enable-sleep-mode
      --swap-space 4
  two:
    image: vllm/vllm-openai:v0.17.1
    environment: [VLLM_LOG_LEVEL=debug, HF_TOKEN]
    command: ["--model", "m", "--block-size=${BS:-7}"]
  three:
    image: mine
    entrypoint: [vllm, serve, m]
    command: [--foo]
  four:
    image: mine
    command: bash -c "vllm serve m --bar"
"""


def test_a_compose_file() -> None:
    assert lines(COMPOSE.strip("\n"), "", "compose.yaml") == [
        (2, "LT202", "VLLM_USE_V1"),
        (8, "LT401", "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True with --enable-sleep-mode"),
        (11, "LT408", "--swap-space"),
        (15, "LT507", "VLLM_LOG_LEVEL"),
        (16, "LT301", "--block-size 7"),
        (20, "LT101", "--foo"),
        (23, "LT101", "--bar"),
    ]


KUBERNETES = """
apiVersion: apps/v1
kind: Deployment
spec:
  template:
    spec:
      containers:
        - name: a
          image: vllm/vllm-openai:v0.20.0
          env:
            - {name: VLLM_ATTENTION_BACKEND, value: FLASHINFER}
            - {name: TP, value: "3"}
            - name: HF_TOKEN
              valueFrom: {secretKeyRef: {name: x, key: y}}
          args: ["--model", "m", "--block-size=x", "--tensor-parallel-size=$(TP)", "--port=$(PORT)"]
        - name: b
          image: mine
          command: ["/bin/sh", "-c"]
          args:
            - |
              export NV_GPU_NVLINK_ENABLE=1
              vllm serve m --max-num-seqs 128 \\
                --max-num-batched-tokens 64
---
kind: List
items:
  - kind: Pod
    spec:
      containers:
        - command: [python3, -m, vllm.entrypoints.openai.api_server]
          args: [--model, m, --foo]
"""


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("services:\n  a:\n    env_file: x.env\n", "env_file"),
        ("kind: Pod\nspec:\n  containers:\n    - envFrom: [{configMapRef: {name: x}}]\n", "envFrom"),
    ],
)
def test_variables_that_come_from_elsewhere_are_told(text: str, name: str) -> None:
    (one,) = result(text, "0.17.1", "a.yaml").inputs
    assert f"the variables of {name} are not read" in one.notes[0]


def test_a_kubernetes_manifest() -> None:
    assert [(code, subject) for _, code, subject in lines(KUBERNETES.strip("\n"), "", "k8s.yml")] == [
        ("LT202", "VLLM_ATTENTION_BACKEND"),
        ("LT302", "--block-size x"),
        ("LT503", "NV_GPU_NVLINK_ENABLE"),
        ("LT405", "--max-num-batched-tokens < --max-num-seqs"),
        ("LT101", "--foo"),
    ]


def test_a_config_map() -> None:
    text = """
kind: ConfigMap
data:
  VLLM_NONSENSE: "1"
  start.sh: |
    #!/bin/sh
    vllm serve m --foo
  notes: VLLM_OTHER=1
"""
    assert lines(text.strip("\n"), "0.17.1", "map.yaml") == [(3, "LT201", "VLLM_NONSENSE"), (6, "LT101", "--foo")]


def test_a_manifest_puts_its_own_variables_in() -> None:
    from oortriage.lint.checks import Model

    found = findings(KUBERNETES, "", "k8s.yml", model=Model(heads=32))
    assert "--tensor-parallel-size 3" in [one.subject for one in found if one.code == "LT308"]


def test_a_helm_template_is_read_round_its_templates() -> None:
    text = """
{{- if .Values.on }}
kind: Pod
spec:
  containers:
    - image: "vllm/vllm-openai:{{ .Values.tag }}"
      env: [{name: VLLM_NONSENSE, value: {{ .Values.x | quote }}}]
      args: [--model={{ .Values.model }}, --block-size, {{ .Values.size }}, --foo]
{{- end }}
"""
    assert codes(text, "0.17.1", "pod.yaml") == ["LT201", "LT101"]


SYSTEMD = r"""
[Unit]
Description=vLLM
[Service]
Environment="VLLM_LOG_LEVEL=debug" CUDA_VISIBLE_DEVICES=0,1
EnvironmentFile=/etc/vllm.env
ExecStart=/opt/venv/bin/vllm serve m \
  --tensor-parallel-size 4 --port ${PORT}
"""


def test_a_systemd_unit() -> None:
    assert lines(SYSTEMD.strip("\n"), "0.17.1", "vllm.service") == [
        (4, "LT412", "CUDA_VISIBLE_DEVICES=0,1"),
        (4, "LT507", "VLLM_LOG_LEVEL"),
    ]
    assert "/etc/vllm.env" in result(SYSTEMD, "0.17.1", "vllm.service").inputs[0].notes[0]


def test_a_file_of_variables() -> None:
    text = "# c\nexport VLLM_NONSENSE='x y' \nVLLM_LOG_LEVEL=debug # why\nnot a line\n\nA=$B\n"
    assert lines(text, "0.17.1", ".env") == [(2, "LT201", "VLLM_NONSENSE"), (3, "LT507", "VLLM_LOG_LEVEL")]


PYTHON = """
import os, subprocess
os.environ["VLLM_PROFILE_MEMORY"] = "1"
os.environ.update({"VLLM_NONSENSE": "1"}, VLLM_OTHER="2")
os.environ.setdefault("VLLM_LOG_LEVEL", "debug")
os.putenv("NV_GPU_NVLINK_ENABLE", "1")
from vllm import LLM
os.environ["VLLM_USE_V1"] = flag
llm = LLM("m", attention_backend="flash_attn", block_size=64, gpu_memory_utilization=util)
subprocess.run(["vllm", "serve", "m", "--foo", str(1)])
os.system("vllm serve m --bar")
"""


def test_a_python_file() -> None:
    assert lines(PYTHON.strip("\n"), "0.6.3", "a.py") == [
        (2, "LT502", "VLLM_PROFILE_MEMORY"),
        (3, "LT201", "VLLM_NONSENSE"),
        (3, "LT201", "VLLM_OTHER"),
        (4, "LT507", "VLLM_LOG_LEVEL"),
        (5, "LT503", "NV_GPU_NVLINK_ENABLE"),
        (7, "LT203", "VLLM_USE_V1"),
        (8, "LT111", "attention_backend"),
        (8, "LT301", "--block-size 64"),
        (9, "LT101", "--foo"),
        (10, "LT101", "--bar"),
    ]


def test_a_file_of_options() -> None:
    text = "model: m\nblock-size: 64\nenforce_eager: true\nenable-chunked-prefill: false\nfoo: [1, 2]\n"
    assert lines(text, "0.6.3", "serve.yaml") == [(2, "LT301", "--block-size 64"), (5, "LT101", "--foo")]


def test_a_command_that_reads_a_file_of_options_says_so() -> None:
    (one,) = result("vllm serve --config serve.yaml", "0.17.1").inputs
    assert "serve.yaml" in one.notes[0]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("#!/bin/bash\nvllm serve m", "shell"),
        ("FROM ubuntu\nRUN x", "dockerfile"),
        ("[Service]\nExecStart=vllm serve m", "systemd"),
        ("services:\n  a: {image: x, command: vllm serve m}", "compose"),
        ("kind: Pod\nspec: {}", "kubernetes"),
        ("import os\n", "python"),
        ("A=1\nB=2\n", "dotenv"),
        ("vllm serve m", "shell"),
        ("", "shell"),
    ],
)
def test_a_file_without_a_telling_name_is_known_by_what_it_holds(text: str, kind: str) -> None:
    assert read_document(text.encode(), "unnamed").kind == kind


def test_windows_line_ends_and_marks_are_no_part_of_words() -> None:
    assert codes("\ufeffvllm serve m \\\r\n --block-size 16 \\\r\n --enforce-eager\r\n", "0.6.3", "a.sh") == []
    assert read_document("vllm serve m --foo".encode("utf-16"), "a.sh").units


BOMB = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)
)


@pytest.mark.parametrize(
    ("data", "name", "told"),
    [
        (b"x" * (LARGEST + 1), "a.sh", "larger than"),
        (bytes(range(256)), "a.sh", "is no text"),
        (b"a: [1, 2\n", "a.yaml", "line 2: it is no YAML"),
        (b"a: !!python/object:os.system [x]\nb: :\n  - [", "a.yaml", "it is no YAML"),
        (f"{BOMB}kind: x\nspec: *a11\n".encode(), "a.yaml", "expand to more than"),
        (f"services: {{a: &b {{image: x}}}}\nx: {'[' * 5000}".encode(), "a.yaml", "YAML"),
        (b"def (", "a.py", "line 1: it is no Python"),
        (b"x = " + b"-" * 100_000 + b"1", "a.py", "Python"),
    ],
)
def test_what_cannot_be_read_is_told_in_one_sentence(data: bytes, name: str, told: str) -> None:
    with pytest.raises(InputError, match=told) as problem:
        read_document(data, name)
    assert str(problem.value).startswith(f"{name}: ")
    assert "\n" not in str(problem.value)


def test_tags_of_objects_make_no_object() -> None:
    text = "kind: Pod\nspec:\n  containers:\n    - args: !!python/object/apply:os.system ['vllm']\n"
    assert codes(text, "0.17.1", "a.yaml") == []


@pytest.mark.parametrize(
    "text",
    [
        "$(" * 20_000,
        "`'\"$(" * 10_000,
        "'" * 5001 + "\nvllm serve m",
        "cat <<A <<B\n" * 2000,
        "vllm serve m " + "--a " * 15_000,
        "vllm serve m --" + "block-" * 50_000,
        "".join(f"export VLLM_X{n}=1\nvllm serve m\n" for n in range(90)),
        "A=(" + "x " * 5000,
        "vllm serve m \\\n" * 3000,
    ],
)  # fmt: skip
def test_a_hostile_script_is_read_in_bounds(text: str) -> None:
    made = result(text, "0.17.1", "a.sh")
    assert len(made.findings) <= 500
    assert all(len(one.message) <= 2000 and len(one.subject) <= 300 for one in made.findings)


def test_what_was_cut_is_told() -> None:
    (one,) = result("vllm serve m --" + "block-" * 50_000, "0.17.1", "a.sh").inputs
    assert "was not read" in one.notes[0]
    (one,) = result("vllm serve m\n" * 210, "0.17.1", "a.sh").inputs
    assert "only the first 200 commands" in one.notes[0]


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("a $X b", ("a 1 b", False)),
        ("${X}${Y:-2}", ("12", False)),
        ("$Z", ("$Z", True)),
        ("${{ x }}", ("${{ x }}", True)),
        ("{{ x }}", ("{{ x }}", True)),
        ("$5", ("$5", False)),
    ],
)
def test_variables_are_put_in_where_they_are_known(text: str, made: tuple[str, bool]) -> None:
    assert expand(text, {"X": "1"}) == made


def test_the_output_of_a_command_is_unknown() -> None:
    assert without_outputs("a $(b $(c) d) `e` '$(f)' \"$(g)\"") == ("a $__output__ $__output__ '$(f)' \"$__output__\"")


def test_a_file_of_every_kind_may_be_empty() -> None:
    for name in ("a.sh", "a.yaml", "Dockerfile", "a.py", "a.service", ".env"):
        assert result("", "0.17.1", name).findings == ()
        assert result(textwrap.dedent("\n \n"), "0.17.1", name).findings == ()
