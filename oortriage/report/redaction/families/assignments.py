"""Secrets that a name gives away: `password=`, `"api_key": `, `HF_TOKEN=`, `--api-key VALUE`."""

from __future__ import annotations

import regex

from oortriage.report.redaction.pattern import Pattern

#: Names that hold a secret whatever stands before them.
_STRONG = (
    r"pass(?:word|wd|phrase|code)|pwd"
    r"|secret(?:[-_]?(?:access|api|shared))?(?:[-_]?key)?"
    r"|api[-_ ]?key|apikey|access[-_]?key(?:[-_]?id)?|(?:private|account|encryption|signing|auth|license)[-_]?key"
    r"|credentials?"
    r"|(?:access|auth|authentication|refresh|session|bearer|id|api|hf|huggingface|hub|github|gh|gitlab|security|sas"
    r"|bot|csrf|xsrf|service|deploy|personal|registry|npm|pypi|jupyter|user|jwt|oauth|slack|discord|ngc)[-_]?token"
)
#: `token` alone means a word of a text more often than a login: its value decides.
_NAMES = rf"(?P<name>{_STRONG}|token|(?<=[A-Z0-9]_)(?-i:KEY|PASS|AUTH))"
_VALUE = (
    r"""(?:\\"(?P<secret>[^"\\\n]++)|"(?P<secret>(?:[^"\\\n]|\\[^\n])++)|'(?P<secret>(?:[^'\\\n]|\\[^\n])++)"""
    # A comma or an ampersand belongs to the value, unless a blank or the next setting follows.
    r"""|(?P<secret>(?:[^\s"'`<>,;&\\()\[\]{}|]|[,;&](?!\s|[\w.-]{1,40}+[=:]|$)|[()\[\]{}](?=[^\s"'`,;)\]}]))++))"""
)
_TAIL = r"""(?:[-_](?:\d{1,3}|prod|dev|test|staging|value))?+(?: (?:provided|is|was|used))?+"""

#: What the names end with.
_LAST = r"word|wd|phrase|code|secret|shared|access|api|key|id|credentials?|token|pass|auth"
_TAIL_BEFORE = r"(?:[-_](?:\d{1,3}|prod|dev|test|staging|value))?(?: (?:provided|is|was|used))?"

_ANCHORS = ("pass", "pwd", "secret", "key", "credential", "token", "_auth")

#: What a value that is no secret looks like.
_EMPTY = regex.compile(
    r"(?i)none|null|nil|true|false|empty|\(?(?:not|un)[- ]?set\)?|unset|undefined|required|missing|invalid|incorrect|"
    r"expired|wrong|optional|str(?:ing)?|int|bool|bytes|secretstr|redacted|removed|hidden|masked|"
    r"[*x•.\-_]{2,}|\W|\$\{?\w*+\}?|%\w|\{\w*+\}|n/a|yes|no|on|off|authentication|default|auto"
)
#: An expression of a program, as in the source line of a frame.
_CODE = regex.compile(
    r"(?:self|cls|args?|kwargs|config|cfg|os|settings|opts?|options|params|request|getpass|secrets|typing)\.\w"
    r"|[A-Za-z_][\w.]*+(?:\(|\[[\"'A-Za-z])|(?:Optional|Union|List|Dict)\["
)
_PATH = regex.compile(r"[~.]?/|[A-Za-z]:[\\/]")
_OTHER_TOKENS = regex.compile(
    r"(?i)(?:^|[^a-z0-9])(?:pad|eos|bos|unk|sep|cls|mask|image|video|audio|special|stop|start|end|next|new|first|last|per|"
    r"prompt|draft|max|num|min|n|input|output|cached|bonus|target|vocab|out|in|each|media|text|dummy|boi|eoi|eot|think|"
    r"tool|decoder|additional|sampled|accepted|current|prev|previous|single|one|total|last|extra|padding|label)[-_ ]?$"
)
_WORDS = regex.compile(r"[A-Za-z][a-z]*(?:[-_.][A-Za-z]*)*")


def is_value(name: str, secret: str, before: str, after: str) -> bool:
    """Say whether what a name of a secret is set to is one; ``before`` ends with the name and its separator."""
    value = secret.strip().rstrip(",;)")
    if len(value) < 3 or _EMPTY.fullmatch(value) or value.endswith(name) or "os.environ" in value:
        return False
    quoted = before[-1:] in "\"'"
    if not quoted and (_CODE.match(value) or after[:1] in {"(", "["}):
        return False
    low = name.lower()
    if low in {"pwd", "credentials", "credential"} or low.startswith("private"):
        return not _PATH.match(value) and low != "credential"
    mixed = any(c.isdigit() for c in value) and any(c.isalpha() for c in value)
    if low == "token":
        stem = before.rstrip("\"' :=>,[\\")[: -len(name)]
        if _OTHER_TOKENS.search(stem):
            return False
        capitals = name.isupper() and stem[-1:] in {"_", "-"}
        strange = len(value) >= 8 and (mixed or (len(value) >= 20 and not _WORDS.fullmatch(value)))
        return (strange and not value.startswith("0x")) or (capitals and not value.isdigit() and len(value) >= 6)
    if low in {"key", "auth"}:
        return len(value) >= 12 and mixed and not _PATH.match(value)
    if low == "pass":
        return True
    if low.endswith("key_id") or "token" in low or "key" in low:
        return len(value) >= 4 and not (value.isdigit() and len(value) < 8)
    return quoted or before[-1:] == "=" or len(value) >= 4


_NAME_BEFORE = regex.compile(
    rf"(?ri){_NAMES}{_TAIL}\\?[\"']?(?:\s*(?:=>|[:=])\s*\[?|[\"']?,?\s+[\"']?|\s*=\s*)\\?[\"']?$"
)


def _accept(secret: str, before: str, after: str) -> bool:
    names = _NAME_BEFORE.search(before[-60:])
    return names is not None and is_value(names.group("name"), secret, before, after)


_NAME_ONLY = regex.compile(rf"(?i)(?:--?)?(?:[\w.-]*[-_.])??{_NAMES}{_TAIL}")


def names_secret(name: str, value: str) -> bool:
    """Say whether a key of a dict or a flag of a command gives away that its value is a secret."""
    found = _NAME_ONLY.fullmatch(name.strip()) if len(name) <= 80 else None
    return found is not None and is_value(found.group("name"), value, name + "=", "")


_FLAG_VALUE = r"""["']?(?P<secret>[^\s"'\-][^\s"']*+)"""

PATTERNS: tuple[Pattern, ...] = (
    Pattern(
        name="named-secret",
        kind="token",
        # From the separator back: a text holds fewer of those than letters that begin a name.
        expression=rf"(?im)[:=]>?(?<=(?:{_LAST}){_TAIL_BEFORE}(?:\\?[\"'])?[ \t]{{0,8}}[:=]>?)[ \t]*+\[?{_VALUE}",
        reason="the name says that it is secret",
        source="https://owasp.org/www-community/vulnerabilities/Insertion_of_Sensitive_Information_into_Log_File",
        anchors=_ANCHORS,
        accept=_accept,
    ),
    Pattern(
        name="secret-flag",
        kind="token",
        expression=rf"""(?i)(?<![\w-])--?(?:[a-z0-9]{{1,20}}[-_]){{0,3}}{_NAMES}(?:["'],)?\s{{1,4}}{_FLAG_VALUE}""",
        reason="a command line that was logged with its secrets",
        source="https://docs.vllm.ai/en/latest/cli/serve/",
        anchors=_ANCHORS,
        accept=_accept,
    ),
    Pattern(
        name="kubernetes-environment",
        kind="token",
        expression=rf"(?i)name:[ ]{{0,4}}[\"']?\w{{0,40}}{_NAMES}[\"']?\s{{1,40}}value:[ ]{{1,4}}[\"']?(?P<secret>[^\s\"']++)",
        reason="the environment of a container in a manifest",
        source="https://kubernetes.io/docs/tasks/inject-data-application/define-environment-variable-container/",
        anchors=("value:",),
        accept=lambda secret, before, after: len(secret) >= 4 and not secret.isdigit() and secret[:1] not in "$<{",
    ),
    Pattern(
        name="login-command",
        kind="token",
        expression=r"(?i)\b(?:wandb|comet|clearml) login[ \t]++(?:--relogin[ \t]++)?(?P<secret>[\w-]{20,}+)",
        reason="a key as an argument",
        source="https://docs.wandb.ai/ref/cli/wandb-login/",
        anchors=(" login",),
    ),
    Pattern(
        name="netrc",
        kind="token",
        expression=r"(?i)\bmachine\s{1,8}\S{1,255}\s{1,8}login\s{1,8}\S{1,255}\s{1,8}password\s{1,8}(?P<secret>\S++)",
        reason="a line of a .netrc file",
        source="https://www.gnu.org/software/inetutils/manual/html_node/The-_002enetrc-file.html",
        anchors=("machine",),
    ),
    Pattern(
        name="curl-user",
        kind="token",
        expression=r"\b(?:curl|wget)\b[^\n]{0,200}?\s(?:-u|--user)[ =]?[\"']?(?P<secret>[^\s\"':]++:[^\s\"']++)",
        reason="a name and password as an argument",
        source="https://curl.se/docs/manpage.html",
        anchors=("curl", "wget"),
    ),
    Pattern(
        name="password-argument",
        kind="token",
        expression=r"\b(?:sshpass -p[ ]?|docker login [^\n]{0,120}?-p |mysql [^\n]{0,120}?-p)[\"']?(?P<secret>[^\s\"']++)",
        reason="a password as an argument",
        source="https://docs.docker.com/reference/cli/docker/login/",
        anchors=("sshpass", "docker login", "mysql "),
    ),
)
