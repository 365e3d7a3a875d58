"""Secrets of HTTP: headers, logins in addresses, keys in query strings."""

from __future__ import annotations

import regex

from oortriage.report.redaction.pattern import Pattern

_HEADER_END = r"""(?=\\?["'])"""
_PLAIN_USERS = frozenset({"git", "hg", "root", "anonymous"})
_OPEN = regex.compile(r"\$\{?\w+\}?|\*+|x+|none|true|false|\d{1,5}|<\w+>", regex.IGNORECASE)


def _no_plain_user(secret: str, before: str, after: str) -> bool:
    return secret not in _PLAIN_USERS


def _closed(secret: str, before: str, after: str) -> bool:
    return _OPEN.fullmatch(secret) is None


def _strange(secret: str, before: str, after: str) -> bool:
    return any(c.isdigit() for c in secret) or len(secret) >= 24


PATTERNS: tuple[Pattern, ...] = (
    Pattern(
        name="authorization-header",
        kind="token",
        expression=(
            r"(?i)(?<![A-Za-z0-9])(?:proxy-)?authorization(?:\\?[\"'])?[ \t]*+[:=,][ \t]*+(?:b?\\?[\"'])?"
            r"(?:(?:bearer|basic|token|apikey|api-key|key|negotiate|digest|ntlm|aws4-hmac-sha256)[ \t]++)?+"
            r"(?P<secret>(?:(?<=(?:digest|sha256)[ \t])[^\n'\\]++|[^\s\"'\\,})\]]++))"
        ),
        reason="a login that works until it ends",
        source="https://www.rfc-editor.org/rfc/rfc9110#name-authorization",
        anchors=("authorization",),
        accept=_closed,
    ),
    Pattern(
        name="bearer",
        kind="token",
        expression=r"(?i)(?<![\w-])bearer[ \t]++(?P<secret>[\w.~+/=-]{8,}+)",
        reason="a login that works until it ends",
        source="https://www.rfc-editor.org/rfc/rfc6750",
        anchors=("bearer",),
        accept=_strange,
    ),
    Pattern(
        name="cookie-header",
        kind="token",
        expression=(
            r"(?i)(?<![\w-])(?:set-)?cookie(?:\\?[\"'])?[ \t]*+:[ \t]*+"
            r"(?:\\\"(?P<secret>[^\"\\\n]++)|\"(?P<secret>[^\"\\\n]++)|'(?P<secret>[^'\n]++)|(?P<secret>[^\s\"'\\][^\n\"'\\]*+))"
        ),
        reason="a cookie is a login",
        source="https://www.rfc-editor.org/rfc/rfc6265",
        anchors=("cookie",),
    ),
    Pattern(
        name="key-header",
        kind="token",
        expression=(
            r"(?i)(?<![\w-])(?:x-(?:[a-z]{1,16}-){0,3}(?:key|token|secret|signature)|api-key|ocp-apim-subscription-key)"
            r"(?:\\?[\"'])?[ \t]*+[:=][ \t]*+(?:b?\\?[\"'])?(?P<secret>[^\s\"'\\,;&})\]]{6,}+)"
        ),
        reason="a header that carries a key",
        source="https://docs.anthropic.com/en/api/overview",
        anchors=("x-", "api-key", "ocp-apim"),
        accept=_closed,
    ),
    Pattern(
        name="login-in-address",
        kind="token",
        expression=r"://(?P<secret>[^\s/\"'<>@]{0,255}+(?:@(?=[^\s/\"'<>@]{1,255}+@)[^\s/\"'<>@]{1,255}+){0,3})@(?=[\w\[\U000F0000-\U0010FFFF])",
        reason="name and password stand before the host",
        source="https://www.rfc-editor.org/rfc/rfc3986#section-3.2.1",
        anchors=("://",),
        accept=_no_plain_user,
    ),
    Pattern(
        name="key-in-query",
        kind="token",
        expression=(
            r"(?i)[?&;](?:[\w.-]{0,32}[-_.])?(?:\w{0,12}token|\w{0,12}key(?:id)?|sig(?:nature)?|secret|password|passwd|pwd"
            r"|auth|credential|session(?:id)?|jwt|hash)=(?P<secret>[^\s&;#\"'<>\\]{4,}+)"
        ),
        reason="an address that works as a login",
        source="https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-query-string-auth.html",
        anchors=("=",),
        accept=_closed,
    ),
    Pattern(
        name="azure-signature",
        kind="token",
        expression=r"(?<![A-Za-z0-9])sig=(?P<secret>[A-Za-z0-9%+/]{20,}+(?:%3[dD]|=)*+)",
        reason="a shared access signature opens the storage",
        source="https://learn.microsoft.com/en-us/azure/storage/common/storage-sas-overview",
        anchors=("sig=",),
    ),
)
