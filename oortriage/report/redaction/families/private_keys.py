"""Private keys in armour."""

from __future__ import annotations

from oortriage.report.redaction.pattern import Pattern

PATTERNS: tuple[Pattern, ...] = (
    Pattern(
        name="armoured-private-key",
        kind="token",
        # To the end mark where there is one; a log that was cut has none, and lines of base64 are taken.
        expression=(
            r"-----BEGIN (?:[A-Z0-9]{1,16} ){0,4}(?:PRIVATE KEY|SECRET KEY)(?: BLOCK)?-----"
            r"(?:(?P<secret>(?:[^-]|-(?!----))++)(?=-----END)"
            r"|(?P<secret>(?:(?:\s|\\[nr]|[>|])*+[A-Za-z0-9+/=]{16,}+)++))"
        ),
        reason="it opens every machine that trusts it",
        source="https://www.rfc-editor.org/rfc/rfc7468",
        anchors=("-----begin ",),
    ),
    Pattern(
        name="openssh-private-key-body",
        kind="token",
        expression=r"(?<![A-Za-z0-9+/])(?P<secret>b3BlbnNzaC1rZXktdjE[A-Za-z0-9+/=]{20,}+)",
        reason="the body of a private key without its armour",
        source="https://github.com/openssh/openssh-portable/blob/master/PROTOCOL.key",
        anchors=("b3blbnnzac1rzxktdje",),
    ),
    Pattern(
        name="pkcs-private-key-body",
        kind="token",
        expression=r"(?<![A-Za-z0-9+/])(?P<secret>MI(?:IEv[AgQ]|IEp[AQgw]|IJK|IJQ|ICd|ICX|IBV|GHAgEAM)[A-Za-z0-9+/=\\]{40,}+)",
        reason="the body of a private key without its armour",
        source="https://www.rfc-editor.org/rfc/rfc5958",
        anchors=("mii", "mig"),
    ),
    Pattern(
        name="ssh-public-key",
        kind="token",
        expression=r"(?<![\w-])(?:ssh-(?:rsa|ed25519|dss)|ecdsa-sha2-nistp\d{3}) (?P<secret>AAAA[A-Za-z0-9+/=]{20,}+)",
        reason="no secret, but it names its owner",
        source="https://www.rfc-editor.org/rfc/rfc4253",
        anchors=(" aaaa",),
    ),
    Pattern(
        name="ssh-key-fingerprint",
        kind="token",
        expression=r"SHA256:(?P<secret>[A-Za-z0-9+/]{43})(?![A-Za-z0-9+/=])",
        reason="it names a host's or a person's key",
        source="https://man.openbsd.org/ssh-keygen.1",
        anchors=("sha256:",),
    ),
)
