"""Tokens that their own prefix gives away."""

from __future__ import annotations

from oortriage.report.redaction.pattern import Pattern

_REASON = "whoever reads it can act and spend in the owner's name"
_GITLEAKS = "https://github.com/gitleaks/gitleaks/blob/master/config/gitleaks.toml"


def _has_digit(secret: str, before: str, after: str) -> bool:
    return any(character.isdigit() for character in secret)


def _varied(secret: str, before: str, after: str) -> bool:
    # `hf_` + letters alone is a token too, but no word of one case is.
    return _has_digit(secret, before, after) or not (secret[3:].islower() or secret[3:].isupper())


def _prefixed(name: str, prefix: str, body: str, source: str = _GITLEAKS, *anchors: str) -> Pattern:
    return Pattern(
        name=name,
        kind="token",
        expression=rf"(?<![A-Za-z0-9])(?P<secret>{prefix}{body})",
        reason=_REASON,
        source=source,
        anchors=anchors or (prefix.replace("\\", "").lower(),),
        accept=_varied if prefix == "hf_" else None,
    )


#: name, prefix as an expression, body as an expression
_WITH_PREFIX = (
    ("anthropic", "sk-ant-", r"[\w-]{16,}+"),
    ("gitlab", "glpat-", r"[\w.-]{16,}+"),
    ("gitlab-ci", "glcbt-", r"[\w.-]{16,}+"),
    ("gitlab-deploy", "gldt-", r"[\w.-]{16,}+"),
    ("gitlab-runner", "glrt-", r"[\w.-]{16,}+"),
    ("google-oauth-client", "GOCSPX-", r"[\w-]{20,}+"),
    ("google-refresh", "1//0", r"[\w-]{24,}+"),
    ("npm", "npm_", r"[A-Za-z0-9]{30,}+"),
    ("replicate", "r8_", r"[A-Za-z0-9]{30,}+"),
    ("groq", "gsk_", r"[A-Za-z0-9]{20,}+"),
    ("xai", "xai-", r"[A-Za-z0-9]{30,}+"),
    ("perplexity", "pplx-", r"[A-Za-z0-9]{30,}+"),
    ("together", "tgp_v1_", r"[\w-]{30,}+"),
    ("cerebras", "csk-", r"[A-Za-z0-9]{30,}+"),
    ("runpod", "rpa_", r"[A-Za-z0-9]{30,}+"),
    ("langsmith", "lsv2_", r"(?:pt|sk)_[\w]{30,}+"),
    ("pinecone", "pcsk_", r"\w{30,}+"),
    ("tavily", "tvly-", r"[\w-]{20,}+"),
    ("jina", "jina_", r"[\w-]{30,}+"),
    ("kaggle", "KGAT_", r"[A-Za-z0-9]{24,}+"),
    ("wandb", "wandb_v1_", r"[\w-]{20,}+"),
    ("docker", "dckr_pat_", r"[\w-]{20,}+"),
    ("digitalocean", "do[opr]_v1_", r"[a-f0-9]{40,}+"),
    ("databricks", "dapi", r"[a-f0-9]{32}(?:-\d)?+"),
    ("sendgrid", r"SG\.", r"[\w-]{16,}+\.[\w-]{16,}+"),
    ("vault", r"hv[sb]\.", r"[\w-]{20,}+"),
    ("grafana", "gl(?:sa|c)_", r"[\w+/=]{30,}+"),
    ("notion", "ntn_", r"[A-Za-z0-9]{40,}+"),
    ("linear", "lin_api_", r"[A-Za-z0-9]{30,}+"),
    ("pulumi", "pul-", r"[a-f0-9]{40}"),
    ("shopify", "shp(?:at|ca|pa|ss)_", r"[a-fA-F0-9]{32}"),
    ("netlify", "nfp_", r"[\w-]{30,}+"),
    ("postman", "PMAK-", r"[a-f0-9]{24}-[a-f0-9]{34}"),
    ("alibaba", "LTAI", r"[A-Za-z0-9]{12,24}+(?![A-Za-z0-9])"),
    ("tencent", "AKID", r"[A-Za-z0-9]{30,}+"),
    ("age", "AGE-SECRET-KEY-1", r"[A-Z0-9]{50,}+"),
)

_ANCHORS = {
    "digitalocean": ("_v1_",),
    "vault": ("hvs.", "hvb."),
    "grafana": ("glsa_", "glc_"),
    "shopify": ("shp",),
}

PATTERNS: tuple[Pattern, ...] = (
    _prefixed("hugging-face", "hf_", r"[A-Za-z0-9]{20,}+", "https://huggingface.co/docs/hub/security-tokens"),
    _prefixed("hugging-face-org", "api_org_", r"[A-Za-z0-9]{20,}+"),
    _prefixed(
        "github",
        "gh[opsur]_",
        r"\w{20,}+",
        "https://docs.github.com/en/authentication/keeping-your-account-and-data-secure/about-authentication-to-github",
        "ghp_",
        "gho_",
        "ghs_",
        "ghu_",
        "ghr_",
    ),
    _prefixed("github-fine-grained", "github_pat_", r"\w{20,}+"),
    _prefixed(
        "aws-key-id",
        "A(?:KIA|SIA|BIA|CCA)",
        r"[A-Z0-9]{16}(?![A-Za-z0-9])",
        "https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html",
        "akia",
        "asia",
        "abia",
        "acca",
    ),
    _prefixed("google-api", "AIza", r"[\w-]{30,}+"),
    _prefixed("google-oauth", r"ya29\.", r"[\w-]{16,}+(?:\.[\w-]++)*+"),
    _prefixed("slack", "xox[abeoprs]-", r"[A-Za-z0-9-]{10,}+", _GITLEAKS, "xox"),
    _prefixed("slack-app", "xapp-", r"[A-Za-z0-9-]{10,}+"),
    _prefixed("pypi", "pypi-", r"AgE[\w-]{20,}+"),
    _prefixed("nvidia", "nvapi-", r"[\w-]{20,}+", "https://docs.nvidia.com/ngc/gpu-cloud/ngc-user-guide/index.html"),
    _prefixed("stripe", "(?:sk|rk|pk)_(?:live|test)_", r"[A-Za-z0-9]{10,}+", _GITLEAKS, "k_live_", "k_test_"),
    _prefixed("stripe-webhook", "whsec_", r"[A-Za-z0-9+/=]{20,}+"),
    _prefixed("twilio-account", "AC", r"[a-f0-9]{32}(?![A-Za-z0-9])"),
    _prefixed("twilio-key", "SK", r"[a-f0-9]{32}(?![A-Za-z0-9])"),
    *(_prefixed(name, prefix, body, _GITLEAKS, *_ANCHORS.get(name, ())) for name, prefix, body in _WITH_PREFIX),
    Pattern(
        name="openai",
        kind="token",
        expression=r"(?<![A-Za-z0-9])(?P<secret>sk-[\w-]{16,}+)",
        reason=_REASON,
        source="https://platform.openai.com/docs/api-reference/authentication",
        anchors=("sk-",),
        accept=_has_digit,
    ),
    Pattern(
        name="json-web-token",
        kind="token",
        expression=r"(?<![A-Za-z0-9])(?P<secret>eyJ[\w-]{8,}+\.[\w-]{8,}+(?:\.[\w-]*+){0,3})",
        reason="it is a login, and its middle names the person",
        source="https://www.rfc-editor.org/rfc/rfc7519",
        anchors=("eyj",),
    ),
    Pattern(
        name="slack-webhook",
        kind="token",
        expression=r"hooks\.slack\.com/(?:services|workflows)/(?P<secret>[\w/-]{16,}+)",
        reason="whoever knows the address can post",
        source="https://api.slack.com/messaging/webhooks",
        anchors=("hooks.slack.com",),
    ),
    Pattern(
        name="discord-webhook",
        kind="token",
        expression=r"discord(?:app)?\.com/api/webhooks/(?P<secret>\d{10,24}/[\w-]{16,}+)",
        reason="whoever knows the address can post",
        source="https://discord.com/developers/docs/resources/webhook",
        anchors=("/webhooks/",),
    ),
    Pattern(
        name="telegram-bot",
        kind="token",
        expression=r"(?<!\d)(?P<secret>\d{8,10}:AA[\w-]{30,40}+)",
        reason=_REASON,
        source="https://core.telegram.org/bots/api",
        anchors=(":aa",),
    ),
    Pattern(
        name="azure-ad-client-secret",
        kind="token",
        expression=r"(?<![\w~.-])(?P<secret>[\w~.]{3}\dQ~[\w~.-]{31,34}+)",
        reason=_REASON,
        source=_GITLEAKS,
        anchors=("q~",),
    ),
    Pattern(
        name="aws-account",
        kind="account",
        expression=r"arn:aws[\w-]{0,16}:[\w-]{0,32}:[\w-]{0,24}:(?P<secret>\d{12})(?=:)",
        reason="the number names the customer",
        source="https://docs.aws.amazon.com/IAM/latest/UserGuide/reference-arns.html",
        anchors=("arn:aws",),
    ),
    Pattern(
        name="aws-registry-account",
        kind="account",
        expression=r"(?<!\d)(?P<secret>\d{12})(?=\.dkr\.ecr\.)",
        reason="the number names the customer",
        source="https://docs.aws.amazon.com/AmazonECR/latest/userguide/Registries.html",
        anchors=(".dkr.ecr.",),
    ),
)
