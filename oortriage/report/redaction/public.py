"""Hosts that everybody knows: the sites of libraries, registries, clouds. Their names stay."""

from __future__ import annotations

#: Domains; a host below one is public too.
PUBLIC_DOMAINS = frozenset(
    """
    github.com githubusercontent.com github.io gitlab.com bitbucket.org sourceforge.net gnu.org kernel.org
    huggingface.co hf.co hf-mirror.com modelscope.cn kaggle.com civitai.com ollama.com ollama.ai
    pytorch.org python.org pypi.org pythonhosted.org readthedocs.io readthedocs.org anaconda.com anaconda.org conda.io
    nvidia.com nvcr.io amd.com intel.com apple.com huawei.com hiascend.com rocm.docs.amd.com
    vllm.ai sglang.ai sglang.io ray.io lmsys.org lightning.ai lightning.dev tensorflow.org keras.io jax.dev jax.readthedocs.io
    deepspeed.ai mlflow.org ggml.ai triton-lang.org openxla.org unsloth.ai axolotl.ai bentoml.com onnxruntime.ai onnx.ai
    microsoft.com google.com googleapis.com googlesource.com gcr.io docker.com docker.io ghcr.io quay.io aka.ms goo.gl
    amazon.com ubuntu.com debian.org redhat.com fedoraproject.org archlinux.org alpinelinux.org llvm.org
    openai.com anthropic.com cohere.com mistral.ai together.ai groq.com deepseek.com openrouter.ai meta.com
    wandb.ai wandb.com neptune.ai comet.com clear.ml stackoverflow.com stackexchange.com reddit.com medium.com arxiv.org
    doi.org wikipedia.org w3.org ietf.org rfc-editor.org apache.org mozilla.org npmjs.com rust-lang.org crates.io golang.org
    nodejs.org spack.io cmake.org boost.org schema.org json-schema.org opensource.org creativecommons.org swagger.io
    tiangolo.com pydantic.dev encode.io gradio.app streamlit.io jupyter.org numpy.org scipy.org opencv.org
    kubernetes.io k8s.io prometheus.io grafana.com opentelemetry.io slurm.schedmd.com schedmd.com open-mpi.org openmpi.org
    discord.gg slack.com youtube.com youtu.be bit.ly example.com example.org example.net
    tuna.tsinghua.edu.cn aliyun.com baidu.com paddlepaddle.org.cn mindspore.cn
    """.split()
)

#: Hosts of single labels that name no machine in particular.
PLAIN_HOSTS = frozenset(
    "localhost localhost.localdomain host.docker.internal metadata.google.internal ip6-localhost none null true false unknown "
    "auto default any all host hostname node nodename version windows linux macos memory ram cpu gpu cuda".split()
)

#: Below these, each customer has a name of their own.
PERSONAL_DOMAINS = (
    "compute.internal",
    "amazonaws.com",
    "cloudapp.azure.com",
    "internal.cloudapp.net",
    "proxy.runpod.net",
    "gradio.live",
    "ngrok.io",
    "ngrok.app",
    "ngrok-free.app",
    "trycloudflare.com",
    "run.app",
    "modal.run",
    "ts.net",
    "azurewebsites.net",
    "blob.core.windows.net",
    "openai.azure.com",
    "hf.space",
    "endpoints.huggingface.cloud",
    "cloud.databricks.com",
    "azuredatabricks.net",
    "vast.ai",
    "lambdalabs.com",
)


def is_public(host: str) -> bool:
    """Say whether a host is a known site, or none in particular."""
    host = host.lower().rstrip(".")
    if host in PLAIN_HOSTS:
        return True
    labels = host.split(".")
    return any(".".join(labels[index:]) in PUBLIC_DOMAINS for index in range(len(labels)))
