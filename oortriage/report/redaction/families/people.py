"""Names of persons: e-mail addresses, home folders, shell prompts."""

from __future__ import annotations

import regex

from oortriage.report.redaction.pattern import Pattern

#: Accounts that images and CI bring along: they name nobody, and say what kind of machine it was.
SHARED_ACCOUNTS = frozenset(
    "root runner runneradmin circleci ubuntu ec2-user centos debian rocky jovyan vscode linuxbrew ray vllm sagemaker-user ma-user "
    "user users appuser nonroot nobody docker coder app public default conda all users shared lost+found".split()
)
_CODE_ATTRIBUTES = frozenset(
    "transpose weight data permute view half float to mT mH T t size shape reshape cuda cpu contiguous type unsqueeze "
    "so txt json cmake gguf safetensors yaml yml toml log whl bin cpp cu cuh hpp html "
    "service socket timer target mount slice scope device swap path".split()
)
_REASON_MAIL = "it names a person"
_REASON_HOME = "a home folder bears its owner's name"


def _is_mail(secret: str, before: str, after: str) -> bool:
    local, _, domain = secret.rpartition("@")
    last = domain.rpartition(".")[2]
    # x@w.to(...) is a product of matrices; git@host is how a repository is fetched.
    return after[:1] not in {"(", "["} and last not in _CODE_ATTRIBUTES and local not in {"git", "hg"}


def is_person(secret: str, before: str = "", after: str = "") -> bool:
    """Say whether an account may be a person's."""
    return secret.lower() not in SHARED_ACCOUNTS and regex.fullmatch(r"[.$%{}*\W_]*+|\d{1,2}", secret) is None


def is_login(secret: str, before: str = "", after: str = "") -> bool:
    """Say whether the name before ``@host`` may be a person's."""
    return secret not in {"git", "hg"} and is_person(secret)


_NO_VALUE = frozenset(
    {"none", "null", "true", "false", "id", "name", "assistant", "system", "unknown", "error", "space"}
)


def is_account(secret: str, before: str = "", after: str = "") -> bool:
    """Say whether the value of ``user=`` may be a person."""
    return (
        is_person(secret) and secret.lower() not in _NO_VALUE and not secret.isdigit() and after[:1] not in {"(", "["}
    )


_NAME = r"[^\s/\\:\"'<>|*?,;()\[\]{}`$&=\U000F0000-\U0010FFFF]"
_LOGIN = r"[A-Za-z_][\w.+-]{0,63}"

PATTERNS: tuple[Pattern, ...] = (
    Pattern(
        name="email",
        kind="email",
        expression=r"(?<![\w.%+-])(?P<secret>[\w.%+-]++@(?:[\p{L}\p{N}](?:[\p{L}\p{N}-]{0,62})?+\.){1,8}+[\p{L}]{2,24}+)(?![\w@])",
        reason=_REASON_MAIL,
        source="https://www.rfc-editor.org/rfc/rfc5322#section-3.4",
        anchors=("@",),
        accept=_is_mail,
    ),
    Pattern(
        name="email-in-address",
        kind="email",
        expression=r"(?<![\w.+-])(?P<secret>[\w.+-]++%40(?:[A-Za-z0-9-]{1,63}+\.){1,8}[A-Za-z]{2,24}+)",
        reason=_REASON_MAIL,
        source="https://www.rfc-editor.org/rfc/rfc3986#section-2.1",
        anchors=("%40",),
    ),
    Pattern(
        name="home-folder",
        kind="user",
        expression=rf"/home/(?P<secret>{_NAME}++)",
        reason=_REASON_HOME,
        source="https://refspecs.linuxfoundation.org/FHS_3.0/fhs/ch03s08.html",
        anchors=("/home/",),
        accept=is_person,
    ),
    Pattern(
        name="users-folder",
        kind="user",
        # A blank is part of a name where the path goes on behind it.
        expression=rf"(?i)(?<![\w.])(?:/|[\\/]{{1,4}})users[\\/]{{1,4}}(?P<secret>{_NAME}++(?: {_NAME}{{1,40}}+(?=[\\/])){{0,2}})",
        reason=_REASON_HOME,
        source="https://learn.microsoft.com/en-us/windows/win32/shell/knownfolderid",
        anchors=("users",),
        accept=is_person,
    ),
    Pattern(
        name="drive-users-folder",
        kind="user",
        expression=rf"(?i)(?<![A-Za-z])[a-z]:[\\/]{{1,4}}(?:users|documents and settings)[\\/]{{1,4}}(?P<secret>{_NAME}++(?: {_NAME}{{1,40}}+(?=[\\/])){{0,2}})",
        reason=_REASON_HOME,
        source="https://learn.microsoft.com/en-us/windows/win32/shell/knownfolderid",
        anchors=("users", "documents and"),
        accept=is_person,
    ),
    Pattern(
        name="nested-users-folder",
        kind="user",
        expression=rf"(?i)(?<=[\w.-])/users/(?P<secret>{_NAME}++)(?=/)",
        reason="shared file systems keep a folder a person",
        source="https://refspecs.linuxfoundation.org/FHS_3.0/fhs/ch03s08.html",
        anchors=("/users/",),
        accept=is_person,
    ),
    Pattern(
        name="tilde-home",
        kind="user",
        expression=r"(?:(?<=[\s\"'=:(])|^)~(?P<secret>[a-z_][\w-]{1,31}+)(?=/[A-Za-z.])",
        reason=_REASON_HOME,
        source="https://www.gnu.org/software/bash/manual/html_node/Tilde-Expansion.html",
        anchors=("~",),
        accept=is_person,
    ),
    Pattern(
        name="temporary-folder",
        kind="user",
        expression=r"/(?:torchinductor_|pytest-of-)(?P<secret>[A-Za-z][\w.-]{0,40}+)(?=[/\s\"',:)]|$)",
        reason="programs put the account's name into the names of their temporary folders",
        source="https://github.com/pytorch/pytorch/blob/main/torch/_inductor/runtime/cache_dir_utils.py",
        anchors=("torchinductor_", "pytest-of-"),
        accept=is_person,
    ),
    Pattern(
        name="shell-prompt-user",
        kind="user",
        expression=rf"(?<![\w@/.-])(?P<secret>{_LOGIN}+)@(?=[\w.\U000F0000-\U0010FFFF-]{{1,100}}+(?::[~/\\]|:?\s?[~/][^\n]{{0,80}}\]?[$#%]| [^\]\n]{{1,80}}\][$#]))",
        reason="a prompt names the person who typed",
        source="https://www.gnu.org/software/bash/manual/html_node/Controlling-the-Prompt.html",
        anchors=("@",),
        accept=is_login,
    ),
    Pattern(
        name="remote-user",
        kind="user",
        expression=rf"\b(?:ssh|scp|sftp|rsync|mosh)\s[^\n@]{{0,200}}?(?<![\w.])(?P<secret>{_LOGIN}+)@",
        reason="a login of a person",
        source="https://man.openbsd.org/ssh.1",
        anchors=("@",),
        accept=is_login,
    ),
    Pattern(
        name="named-user",
        kind="user",
        expression=r"(?i)(?<![A-Za-z0-9-])(?:user(?:_?name)?|logname|sudo_user|slurm_job_user|owner|author|submitted by|run_user|uid_name)\\?[\"']?[ \t]*+[:=][ \t]*+\\?[\"']?(?P<secret>[A-Za-z_][\w.-]{1,63}+)(?![\w@/=:(\[])",
        reason="a setting that names the person",
        source="https://pubs.opengroup.org/onlinepubs/9799919799/basedefs/V1_chap08.html",
        anchors=("user", "logname", "owner", "author", "submitted by"),
        accept=is_account,
    ),
    Pattern(
        name="logged-in-as",
        kind="user",
        expression=r"(?i)(?:logged in as:?|accepted \w{1,16} for|session opened for user|\(user) (?P<secret>[A-Za-z_][\w.-]{1,63}+)(?![\w@/=:(\[])",
        reason="a service says who uses it",
        source="https://docs.wandb.ai/ref/cli/wandb-login/",
        anchors=("logged in as", "accepted ", "user "),
        accept=is_account,
    ),
    Pattern(
        name="wandb-entity",
        kind="user",
        expression=r"wandb\.ai/(?!site|docs|authorize|settings|quickstart|guides|login)(?P<secret>[\w.-]{2,64}+)(?=/[\w.-]{1,128}(?:/|\s|$))",
        reason="the address of a run begins with its owner",
        source="https://docs.wandb.ai/guides/track/",
        anchors=("wandb.ai/",),
        accept=is_person,
    ),
    Pattern(
        name="password-question",
        kind="user",
        expression=r"(?<![\w@/.-])(?P<secret>[A-Za-z_][\w.+-]{0,63}+)@(?=[\w.\U000F0000-\U0010FFFF-]{1,100}+(?:'s password:|: Permission denied))",
        reason="ssh asks with the login and the host",
        source="https://man.openbsd.org/ssh.1",
        anchors=("'s password:", ": permission denied"),
        accept=is_login,
    ),
    Pattern(
        name="id-command",
        kind="user",
        expression=r"\b[ug]id=\d{1,10}\((?P<secret>[\w.-]{1,64}+)\)",
        reason="output of id",
        source="https://www.gnu.org/software/coreutils/manual/html_node/id-invocation.html",
        anchors=("id=",),
        accept=is_person,
    ),
    Pattern(
        name="listing-owner",
        kind="user",
        expression=r"(?m)^[-dlcbps][-rwxsStT]{9}[.+@]?\s{1,4}\d{1,6}\s{1,8}(?P<secret>[A-Za-z_][\w.-]{0,63}+)(?=\s)",
        reason="output of ls -l",
        source="https://www.gnu.org/software/coreutils/manual/html_node/ls-invocation.html",
        anchors=("rw", "r-"),
        accept=is_person,
    ),
    Pattern(
        name="listing-group",
        kind="user",
        expression=r"(?m)^[-dlcbps][-rwxsStT]{9}[.+@]?\s{1,4}\d{1,6}\s{1,8}\S{1,64}\s{1,8}(?P<secret>[A-Za-z_][\w.-]{0,63}+)(?=\s+\d)",
        reason="output of ls -l; a person's group bears the person's name",
        source="https://www.gnu.org/software/coreutils/manual/html_node/ls-invocation.html",
        anchors=("rw", "r-"),
        accept=is_person,
    ),
    Pattern(
        name="gpustat-user",
        kind="user",
        expression=r"\|[^\n|]{0,40}?(?<![\w.-])(?P<secret>[a-z_][\w.-]{1,31}+)(?:[:/]\w{1,40}+)?(?:/\d{1,8})?\(\d{1,7}M\)",
        reason="gpustat lists who uses a card",
        source="https://github.com/wookayin/gpustat",
        anchors=("m)",),
        accept=is_person,
    ),
)
