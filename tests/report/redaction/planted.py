"""Secrets in the places where logs show them, made at test time: no file of the repository holds the shape of one."""

import random
import string

HEX = "0123456789abcdef"
LETTERS = string.ascii_letters + string.digits
UPPER = string.ascii_uppercase + string.digits
BASE64 = LETTERS + "+/"
URL = LETTERS + "-_"

#: prefix, alphabet, length
TOKENS = {
    "hugging_face": ("hf" + "_", LETTERS, 34),
    "openai": ("sk" + "-", LETTERS, 48),
    "openai_project": ("sk" + "-proj-", URL, 96),
    "anthropic": ("sk" + "-ant-api03-", URL, 90),
    "openrouter": ("sk" + "-or-v1-", HEX, 64),
    "github": ("gh" + "p_", LETTERS, 36),
    "github_oauth": ("gh" + "o_", LETTERS, 36),
    "github_app": ("gh" + "s_", LETTERS, 36),
    "github_fine": ("github" + "_pat_", LETTERS + "_", 82),
    "gitlab": ("gl" + "pat-", URL, 20),
    "aws": ("AK" + "IA", UPPER, 16),
    "aws_session": ("AS" + "IA", UPPER, 16),
    "google": ("AI" + "za", URL, 35),
    "google_oauth": ("ya" + "29.", URL, 60),
    "slack": ("xo" + "xb-", string.digits + "-", 24),
    "slack_user": ("xo" + "xp-", LETTERS + "-", 40),
    "npm": ("np" + "m_", LETTERS, 36),
    "pypi": ("py" + "pi-AgE", URL, 100),
    "nvidia": ("nv" + "api-", URL, 64),
    "replicate": ("r8" + "_", LETTERS, 37),
    "groq": ("gs" + "k_", LETTERS, 52),
    "databricks": ("da" + "pi", HEX, 32),
    "digitalocean": ("do" + "p_v1_", HEX, 64),
    "stripe": ("sk" + "_live_", LETTERS, 24),
    "twilio": ("S" + "K", HEX, 32),
    "xai": ("xa" + "i-", LETTERS, 80),
    "perplexity": ("pp" + "lx-", LETTERS, 48),
    "docker": ("dc" + "kr_pat_", URL, 27),
    "langsmith": ("ls" + "v2_pt_", HEX, 32),
}
TOKEN_PLACES = (
    "INFO 01-02 03:04:05 [api.py:10] using {} for the download",
    "export TOKEN_OF_MINE={}",
    "curl -H 'X-Auth-Token: {}' https://huggingface.co/api/whoami",
    '{{"model": "meta-llama/Llama-3.1-8B", "key": "{}"}}',
)
#: Names and values without a prefix of their own.
NAMED = (
    "WANDB_API_KEY={}",
    "wandb login {}",
    "aws_secret_access_key = {}",
    'AWS_SECRET_ACCESS_KEY="{}"',
    "'secretAccessKey': '{}'",
    "aws_session_token={}",
    "AccountName=store;AccountKey={};EndpointSuffix=core.windows.net",
    "https://store1.blob.core.windows.net/c/m.bin?sv=2022-11-02&sig={}",
    "password={}",
    "password: {}",
    '"password": "{}"',
    r"body: {{\"password\": \"{}\"}}",
    "DB_PASSWORD={} python train.py",
    "POSTGRES_PASSWORD: '{}'",
    "token: {}",
    "token={}",
    "hf_token='{}'",
    "HF_TOKEN={}",
    "HUGGING_FACE_HUB_TOKEN={} vllm serve m",
    "api_key={}, port=8000",
    "Namespace(model='m', api_key='{}', port=8000)",
    "Namespace(api_key=['{}'], port=8000)",
    "vllm serve m --api-key {} --max-model-len 4096",
    "vllm serve m --api-key={}",
    "['vllm', 'serve', '--api-key', '{}']",
    "--hf-token {}",
    "non-default args: {{'model': 'm', 'api_key': '{}'}}",
    "Authorization: Bearer {}",
    "authorization: Basic {}",
    "{{'Authorization': 'Bearer {}'}}",
    '-H "Authorization: Token {}"',
    "headers=[(b'authorization', b'Bearer {}')]",
    "x-api-key: {}",
    "'x-api-key': '{}'",
    "Cookie: session={}; theme=dark",
    "Set-Cookie: sid={}; Path=/",
    "api-key: {}",
    "GET /v1/models?api_key={} HTTP/1.1",
    "GET /lab?token={} HTTP/1.1",
    "https://bucket.s3.amazonaws.com/m.bin?X-Amz-Signature={}&X-Amz-Expires=300",
    "git clone https://jane:{}@github.com/acme/private.git",
    "postgresql://app:{}@db/metrics",
    "redis://:{}@cache:6379/0",
    "OPENAI_KEY={}",
    "client_secret={}",
    "access_token={}",
    '"refresh_token":"{}"',
    "Incorrect API key provided: {}.",
    "machine api.wandb.ai login user password {}",
    "curl -u admin:{} https://example.com",
    "sshpass -p {} ssh node",
    "SharedAccessKey={}",
    "secret: {}",
    "MY_SECRET={}",
    "JUPYTER_TOKEN={}",
    "github_token => {}",
    "- name: HF_TOKEN\n  value: {}",
    'password: "it\'s, {}, so"',
    "passphrase = '{}'",
)
PEOPLE = ["jane.doe", "mkowalski", "xiuying-li", "tanaka_k", "olgapetrova", "dmitri88", "fatimah.z", "bjornsson"]
PEOPLE_PLACES = (
    '  File "/home/{}/venv/lib/python3.12/site-packages/torch/nn/modules/module.py", line 1511, in _call_impl',
    "loading /Users/{}/models/llama.gguf",
    r"  File \"C:\Users\{}\AppData\Local\Programs\Python\Python311\lib\site.py\", line 3",
    r"path: C:\\Users\\{}\\model.safetensors",
    "/mnt/c/Users/{}/code",
    "/gpfs/home/{}/run.sh: line 3",
    "/tmp/torchinductor_{}/ab/cabc.py",
    "{}@login1:~/exp$ nvidia-smi",
    "[{}@gpu04 exp]$ python train.py",
    "USER={}",
    "uid=1000({}) gid=1000(x)",
    "wandb: Currently logged in as: {} (team). Use `wandb login --relogin` to force relogin",
    "View run at https://wandb.ai/{}/proj/runs/abc123",
    "{}@login1's password:",
    "process 1234 (user {}) killed",
    "mail {}@cs.university.edu when done",
    "Author: X <{}@gmail.com>",
)
HOSTS = ["gpu-a6k-04", "hpc07", "ml-worker-12b", "dgx-a100-17"]
HOST_PLACES = (
    "Jun 11 19:44:51 {} systemd[1]: Started vllm.service.",
    "2026-06-11T19:44:51.123456+00:00 {} sglang[4021]: ready",
    "{}:3018451:3018451 [0] NCCL INFO Bootstrap",
    "slurmstepd-{}: error: Detected 1 oom_kill event",
    "srun: error: {}: task 3: Out Of Memory",
    "slurmstepd: error: *** STEP 771203.0 ON {} CANCELLED AT 2025-03-25T10:12:54 ***",
    "  host      : {}",
    "hostname: {}",
    "HOSTNAME={}",
    "MASTER_ADDR={}",
    "--rdzv_endpoint {}:29500",
    "tcp://{}:29500",
    "http://{}:8000/v1/models",
    "root@{}:/workspace# ls",
    "SLURM_NODELIST={}",
    "[{}:140211] *** Process received signal ***",
    "timed out after 60s while trying to connect to ({}, 29500).",
    "The client socket has failed to connect to [{}]:29500 (errno: 22 - Invalid argument).",
    "connecting to {}.internal port 80",
    "node {}.cluster.local is down",
    "ping {}.corp",
    "uploading to https://{}.acme-research.com/logs",
)
ADDRESSES = (
    "10.1.2.{}", "192.168.7.{}", "172.20.3.{}", "100.64.9.{}", "34.120.8.{}", "203.0.113.{}",
    "2001:db8:85a3::8a2e:370:{}", "fe80::1ff:fe23:4567:{}", "fd12:3456:789a:1::{}",
)  # fmt: skip
ADDRESS_PLACES = (
    'INFO:     {}:41200 - "GET /health HTTP/1.1" 200 OK',
    "(RayWorkerWrapper pid=1, ip={}) loading",
    "Bootstrap : Using eth0:{}<0>",
    "connection from {} refused",
)
PROMPTS = (
    "Received request cmpl-1: prompt: '{}', params: SamplingParams(n=1, temperature=0.7), prompt_token_ids: [1, 2, 3, 4], lora_request: None.",
    'Received request cmpl-2: prompt: "{}", sampling_params: SamplingParams(n=1), prompt_token_ids: None',
    "Receive: obj=GenerateReqInput(rid='a', text='{}', input_ids=None, sampling_params={{'max_new_tokens': 8}})",
    "Finish: obj=GenerateReqInput(rid='a'), out={{'text': '{}', 'output_ids': [5, 6, 7, 8], 'meta_info': {{}}}}",
    'generate{{inputs="{}" parameters=GenerateParameters}}',
    '{{"inputs": "{}", "parameters": {{"max_new_tokens": 20}}}}',
    '{{"model": "m", "messages": [{{"role": "user", "content": "{}"}}], "max_tokens": 64}}',
    "{{'model': 'm', 'messages': [{{'role': 'system', 'content': 'x'}}, {{'role': 'user', 'content': '{}'}}]}}",
    r'body="{{\"messages\": [{{\"role\": \"user\", \"content\": \"{}\"}}]}}"',
    '{{"prompt": "{}", "max_tokens": 16}}',
    '{{"prompt": ["{}", "b"], "max_tokens": 16}}',
    'llama-cli -m model.gguf -p "{}" -n 32',
    "python run.py --prompt '{}'",
    "negative_prompt='{}', steps=20",
    "Prompt: {}",
    "<|im_start|>user\\n{}<|im_end|>",
)  # fmt: skip
WORDS = [
    "please",
    "summarise",
    "the",
    "merger",
    "of",
    "our",
    "clinic",
    "with",
    "Northwind",
    "before",
    "Friday",
    "and",
    "tell",
    "nobody",
    "in",
    "Oslo",
    "about",
    "the",
    "price",
]


def body(random_: random.Random, alphabet: str, length: int) -> str:
    """Letters that look random, with a digit among them."""
    made = [random_.choice(alphabet) for _ in range(length)]
    made[length // 2] = "7"
    for index in (0, -1):  # a hyphen at an end is no part of a token
        made[index] = random_.choice([c for c in alphabet if c.isalnum()])
    return "".join(made)


def planted() -> list[tuple[str, str]]:
    """Return pairs of a secret and a line that holds it."""
    r = random.Random(20240229)
    made = []
    for prefix, alphabet, length in TOKENS.values():
        for place in TOKEN_PLACES:
            secret = prefix + body(r, alphabet, length)
            made.append((secret, place.format(secret)))
    for place in NAMED:
        for length, alphabet in ((40, HEX), (40, LETTERS), (12, LETTERS)):
            if ("wandb login" in place and length < 20) or ("sig=" in place and length < 20):
                continue
            secret = body(r, alphabet, length)
            made.append((secret, place.format(secret)))
    for place in PEOPLE_PLACES:
        made += [(name, place.format(name)) for name in PEOPLE]
    for place in HOST_PLACES:
        made += [(name, place.format(name)) for name in HOSTS]
    for number, address in enumerate(ADDRESSES):
        for place in ADDRESS_PLACES:
            if ":" in address and "HTTP" in place:
                continue
            made.append((address.format(20 + number), place.format(address.format(20 + number))))
    for place in PROMPTS:
        for _ in range(3):
            secret = " ".join(r.sample(WORDS, 12))
            made.append((secret, place.format(secret)))
    uuid = "-".join(body(r, HEX, n) for n in (8, 4, 4, 4, 12))
    made += [
        ("GPU-" + uuid, f"GPU 0: NVIDIA H100 (UUID: GPU-{uuid})"),
        ("MIG-" + uuid, f"MIG 1g.10gb (UUID: MIG-{uuid})"),
    ]
    mac = "02:42:ac:" + ":".join(body(r, HEX, 2) for _ in range(3))
    made.append((mac, f"link/ether {mac} brd ff:ff:ff:ff:ff:ff"))
    jwt = ".".join(("ey" + "J" + body(r, URL, 30), "ey" + "J" + body(r, URL, 60), body(r, URL, 43)))
    made.append((jwt, f"sent {jwt} to the gateway"))
    send = "S" + "G." + body(r, URL, 22) + "." + body(r, URL, 43)
    made.append((send, f"mailer {send}"))
    return made


def private_key(kind: str = "RSA ") -> tuple[list[str], str]:
    """Return the lines of a key and the key."""
    r = random.Random(7)
    lines = [body(r, BASE64, 64) for _ in range(8)]
    mark = "-" * 5
    return lines, "\n".join([f"{mark}BEGIN {kind}PRIVATE KEY{mark}", *lines, f"{mark}END {kind}PRIVATE KEY{mark}"])
