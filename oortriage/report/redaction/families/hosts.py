"""Names of machines: in the prefixes of logs, in launchers' settings, in addresses, in private zones."""

from __future__ import annotations

import regex

from oortriage.report.redaction.pattern import Accept, Pattern
from oortriage.report.redaction.public import PERSONAL_DOMAINS, is_public

_REASON = "it names a machine, and its zone the owner"
_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?"
_END = r"(?![\w-]|\.\w)"
_IPV4 = regex.compile(r"\d{1,3}(?:\.\d{1,3}){3}")
_FILE = regex.compile(
    r"(?i).*\.(?:py|cc|cpp|cu|cuh|hpp|h|c|rs|go|so|log|txt|json|sh|ya?ml|toml|md|out|err|cfg|ini|js|ts|html)"
)
#: Words that stand before `.local` and such in programs.
_CODE_WORDS = frozenset(
    "threading self cls gevent torch jax os path env config settings asgiref contextvars site np tf xla".split()
)


def is_host(secret: str, before: str = "", after: str = "") -> bool:
    """Say whether a name in the place of a host is a machine's own."""
    return not (
        is_public(secret) or _IPV4.fullmatch(secret) or _FILE.fullmatch(secret) or not any(c.isalpha() for c in secret)
    )


def _numbered(secret: str, before: str, after: str) -> bool:
    return is_host(secret) and bool(regex.search(r"[\d.-]", secret))


def _private_zone(secret: str, before: str, after: str) -> bool:
    labels = secret.split(".")
    if not is_host(secret) or after[:1] in {"(", "[", "_"} or labels[0].lower() in _CODE_WORDS:
        return False
    zone = labels[-1].lower()
    sure = zone in {"lan", "corp", "intranet", "localdomain", "cluster"} or before.endswith(("//", "@"))
    return sure or bool(regex.search(r"[\d-]", secret)) or (secret.islower() and before[-1:] not in {"/", "\\", "_"})


def _far(secret: str, before: str, after: str) -> bool:
    return (
        is_host(secret)
        and bool(regex.search(r"\d", secret.split(".", maxsplit=1)[0]))
        and before[-1:] not in {"/", "\\", "_"}
    )


def _pattern(
    name: str, expression: str, source: str, anchors: tuple[str, ...] = (), accept: Accept = is_host
) -> Pattern:
    return Pattern(
        name=name, kind="host", expression=expression, reason=_REASON, source=source, anchors=anchors, accept=accept
    )


_SYSLOG = "https://www.rfc-editor.org/rfc/rfc3164"
_SLURM = "https://slurm.schedmd.com/srun.html"
_TORCHRUN = "https://docs.pytorch.org/docs/stable/elastic/run.html"
_ZONES = "https://www.rfc-editor.org/rfc/rfc6762#appendix-G"
_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
_S = rf"(?P<secret>{_NAME})"
_LIST = (
    r"(?P<secret>[A-Za-z][\w.-]{0,120}(?:\[[\d,-]{1,200}\])?(?:,[A-Za-z][\w.-]{0,120}(?:\[[\d,-]{1,200}\])?){0,64}+)"
)

PATTERNS: tuple[Pattern, ...] = (
    _pattern(
        "syslog-host",
        rf"(?m)(?<![\w])(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ \d]\d \d\d:\d\d:\d\d {_S}(?= [\w./()@-]{{1,64}}+(?:\[\d{{1,9}}\])?:)",
        _SYSLOG,
        tuple(f"{month} " for month in _MONTHS),
    ),
    _pattern(
        "syslog-host-iso",
        rf"(?m)^(?:<\d{{1,3}}>1? ?)?\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d{{1,9}})?(?:Z|[+-]\d\d:?\d\d)? {_S}(?= [\w./()@-]{{1,64}}+\[\d{{1,9}}\]:| [\w./-]{{1,48}} \d{{1,9}} )",
        "https://www.rfc-editor.org/rfc/rfc5424",
        (":",),
    ),
    _pattern(
        "stream-host",
        rf"\A{_S}(?=/(?:[\w.-]{{1,64}} )?(?:rank|pid)=\d)",
        "docs/architecture.md",
        ("rank=", "pid="),
    ),
    _pattern(
        "connect-pair",
        rf"(?i)(?:connect(?:ing|ed)?|bind|listen(?:ing)?|reach)[^\n(\[]{{0,40}}[(\[][\"']?{_S}(?=[\"']?(?:, ?|\]:)\d{{3,5}})",
        _TORCHRUN,
        ("connect", "bind", "listen", "reach"),
    ),
    _pattern(
        "password-question-host",
        rf"(?<=[\w\U000F0000-\U0010FFFF]@){_S}(?='s password:|: Permission denied)",
        "https://man.openbsd.org/ssh.1",
        ("'s password:", ": permission denied"),
    ),
    _pattern(
        "pod",
        r"(?i)\bpods?[ /:=\"']{1,4}(?:[a-z0-9-]{1,63}/)?(?P<secret>[a-z0-9](?:[a-z0-9-]{0,60})-[0-9a-z]{5,10}-[0-9a-z]{5})(?![\w-])",
        "https://kubernetes.io/docs/concepts/workloads/pods/",
        ("pod",),
        _numbered,
    ),
    _pattern(
        "nccl-host",
        rf"(?<![\w.-]){_S}(?=:\d{{1,8}}:\d{{1,8}}(?: \[\d{{1,3}}\])? (?:[\w./]{{1,64}}:\d{{1,6}} )?NCCL )",
        "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html",
        ("nccl",),
    ),
    _pattern(
        "nccl-peer",
        rf"(?i)(?:remote|peer|local)(?: ?(?:host|peer|node))? {_S}(?=<\d{{1,6}}>)",
        "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html",
        ("<",),
    ),
    _pattern("slurmstepd-host", rf"slurmstepd-{_S}(?=:)", _SLURM, ("slurmstepd-",)),
    _pattern("srun-host", rf"srun: (?:error|warning|info): {_S}(?=: tasks? )", _SLURM, ("srun: ",)),
    _pattern("slurm-on-host", rf"(?:STEP|JOB) [\d._+a-z]{{1,32}} ON {_S}(?= )", _SLURM, (" on ",)),
    _pattern(
        "slurm-node-list",
        rf"(?i)(?:slurm_(?:job_|step_)?nodelist|slurmd_nodename|slurm_submit_host|slurm_launch_node_\w{{1,8}}|(?<![A-Za-z])(?:req|exc|batch)?nodelist|batchhost|--nodelist|pbs_o_host|lsb_hosts)[\"']?[ \t]*+[:=][ \t]*+[\"']?{_LIST}",
        "https://slurm.schedmd.com/sbatch.html",
        ("node", "host"),
    ),
    _pattern(
        "job-on-node",
        rf"(?i)\b(?:on|from|at|to) (?:node|host|machine|instance|server|worker node)s? [\"'`]?{_S}{_END}",
        _SLURM,
        ("node", "host", "machine", "instance", "server"),
        _numbered,
    ),
    _pattern("torchrun-host", rf"(?m)^[^\n:]{{0,40}}?\bhost(?:name)?[ \t]{{1,20}}: {_S}[ \t]*$", _TORCHRUN, ("host",)),
    _pattern(
        "named-host",
        rf"(?i)(?<![A-Za-z0-9])(?:host_?name|node_?name|master[-_]addr(?:ess)?|rdzv[-_](?:endpoint|host)|pod_?name|instance_?name|machine_?name|computer_?name|server_?name|head[-_]node|nodeName|fqdn|kubernetes\.io/hostname|worker_host|x-forwarded-host|dist[-_]init[-_]addr)(?:\\?[\"'])?(?:[ \t]*+[:=][ \t]*+|[ \t]++)(?:\\?[\"'])?(?:tcp://)?{_S}{_END}(?!\()",
        _TORCHRUN,
        ("host", "name", "master", "rdzv", "head", "fqdn", "dist"),
        lambda secret, before, after: (
            is_host(secret)
            and (before[-1:] != " " or before.rstrip()[-1:] in {":", "="} or _numbered(secret, before, after))
        ),
    ),
    _pattern(
        "host-setting",
        rf"(?i)(?<![\w.])(?:--)?(?:host|node|server|addr|address)(?:\\?[\"'])?(?:[ \t]*+[:=][ \t]*+|(?<=--host)[ ])(?:\\?[\"'])?{_S}{_END}(?!\()",
        _TORCHRUN,
        ("host", "node", "server", "addr"),
        _numbered,
    ),
    _pattern(
        "prompt-host",
        rf"(?<=[\w\U000F0000-\U0010FFFF]@){_S}(?=:[~/\\]| [^\]\n]{{1,80}}\][$#])",
        "https://www.gnu.org/software/bash/manual/html_node/Controlling-the-Prompt.html",
        ("@",),
    ),
    _pattern(
        "remote-host",
        rf"\b(?:ssh|scp|sftp|rsync|mosh|pdsh)\s[^\n@]{{0,200}}?[\w\U000F0000-\U0010FFFF]@{_S}",
        "https://man.openbsd.org/ssh.1",
        ("@",),
    ),
    _pattern(
        "ssh-host",
        rf"\bssh (?:-[A-Za-z] ?\S{{0,64}} ){{0,4}}{_S}{_END}(?!:)",
        "https://man.openbsd.org/ssh.1",
        ("ssh ",),
        _numbered,
    ),
    _pattern("pdsh-head", rf"\bpdsh@{_S}(?=:)", "https://www.deepspeed.ai/getting-started/", ("pdsh@",)),
    _pattern(
        "launcher-prefix",
        r"(?m)(?:^|(?<=pdsh@[^\s:]{1,100}: ))(?P<secret>(?:[A-Za-z0-9-]{0,40}(?:node|host|compute|login|dgx|hgx|gpu-?srv|gpunode))-?[A-Za-z]{0,8}-?\d[\w-]{0,32}(?:\.[\w.-]{1,100})?)(?=: )",
        "https://www.deepspeed.ai/getting-started/",
        ("node", "host", "compute", "login", "dgx", "hgx", "srv"),
    ),
    _pattern(
        "open-mpi-host",
        rf"\[{_S}(?=:\d{{2,9}}\] (?:\*\*\*|mca|\[ ?\d|Signal|Failing|pmix|\d more))",
        "https://docs.open-mpi.org/en/main/",
        ("] ",),
    ),
    _pattern(
        "open-mpi-node",
        rf"process rank \d{{1,6}} with PID \d{{1,9}} on node {_S}(?= )",
        "https://docs.open-mpi.org/en/main/",
        ("process rank",),
    ),
    _pattern(
        "uname-host",
        rf"(?m)^Linux {_S}(?= \d{{1,2}}\.\d{{1,3}}\.\d)",
        "https://www.gnu.org/software/coreutils/manual/html_node/uname-invocation.html",
        ("linux ",),
    ),
    _pattern(
        "gpustat-host",
        rf"(?m)^{_S}(?= {{1,8}}(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{{0,6}} )",
        "https://github.com/wookayin/gpustat",
        ("day ", "mon ", "tue ", "wed ", "thu ", "fri ", "sat ", "sun "),
        _numbered,
    ),
    _pattern(
        "ec2-private-name",
        r"(?i)(?<![\w.-])(?P<secret>ip-\d{1,3}(?:-\d{1,3}){3}(?:\.[\w.-]{0,80}(?:internal|compute))?)(?![\w-])",
        "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-instance-naming.html",
        ("ip-",),
    ),
    _pattern(
        "ec2-instance",
        r"(?<![\w-])(?P<secret>i-(?:[0-9a-f]{17}|[0-9a-f]{8}))(?![\w-])",
        "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/resource-ids.html",
        ("i-",),
    ),
    _pattern(
        "private-zone",
        r"(?i)(?<![\w.\-])(?P<secret>(?:[a-z0-9](?:[a-z0-9-]{0,62})\.){1,8}(?:internal|local|corp|lan|intranet|localdomain|home\.arpa|private|svc))(?![\w-]|\.\w)",
        _ZONES,
        (".internal", ".local", ".corp", ".lan", ".intranet", ".home", ".private", ".svc"),
        _private_zone,
    ),
    _pattern(
        "customer-domain",
        r"(?i)(?<![\w.\-])(?P<secret>(?:[a-z0-9](?:[a-z0-9-]{0,62})\.){1,8}(?:"
        + "|".join(regex.escape(one) for one in PERSONAL_DOMAINS)
        + r"))(?![\w-]|\.\w)",
        "https://publicsuffix.org/",
        tuple(PERSONAL_DOMAINS),
        lambda secret, before, after: True,
    ),
    _pattern(
        "address-host",
        rf"(?i)(?:[a-z][a-z0-9+.-]{{1,16}}://|(?<=\bHost: ))(?:[^\s/@\"']{{1,8}}@)?{_S}(?![\w.-])",
        "https://www.rfc-editor.org/rfc/rfc3986#section-3.2.2",
        ("://", "host: "),
    ),
    _pattern(
        "full-name",
        r"(?i)(?<![\w.\-/@])(?P<secret>[a-z0-9](?:[a-z0-9-]{0,62})(?:\.[a-z0-9](?:[a-z0-9-]{0,62})){1,6}\.(?:com|org|net|edu|gov|mil|eu|de|uk|fr|ch|jp|cn|kr|ca|au|nl|se|it|es))(?![\w-]|\.\w|\()",
        "https://www.rfc-editor.org/rfc/rfc1034",
        (".",),
        _far,
    ),
)
