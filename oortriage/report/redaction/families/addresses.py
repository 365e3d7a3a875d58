"""Addresses of machines: IPv4, IPv6, MAC. The hard part is that versions look like IPv4 addresses."""

from __future__ import annotations

import ipaddress

import regex

from oortriage.report.redaction.pattern import Pattern

#: Addresses that everybody has.
_COMMON = frozenset({"169.254.169.254", "255.255.255.255"})

#: What stands before a version: a name of a package, an operator of a requirement, the word itself.
_VERSION_BEFORE = regex.compile(  # (?r) reads from the end
    r"(?ri)(?:(?:==|>=|<=|~=|!=|===|[<>])\s*v?"
    r"|\.(?:so|dylib|dll|tar|whl|deb|rpm|run|exe)\.v?"
    r"|(?<![A-Za-z])(?:v|ver|version|versions|release|rev|build|runtime|toolkit|compatible with|requires|upgrade to|installed)"
    r"(?:[\"']?\s*[:=]?\s*[\"'(]?v?)"
    r"|(?:nvidia[-_ ]|lib|cuda|cudnn|cublas|curand|cufft|cusparse|cusolver|nccl|nvjitlink|nvtx|nvrtc|cupti|cutlass"
    r"|tensorrt|trt|driver|firmware|vbios|bios|kernel|rocm|hip|linux|windows|python|conda|torch|triton|chrome|onnx"
    r"|openmpi|ucx|hpcx|nvshmem|nvcc|ptxas|cann|oneapi|mkl|gcc|glibc|-cu\d\d|-rocm\d)[\w.\-]{0,40}"
    r"(?:\s*(?:\(|version|v|=|:|\|)?)*[\"']?\s*"
    r"|[A-Za-z0-9][-_+~]v?|[A-Za-z]/)$"
)
#: What stands behind one.
_VERSION_AFTER = regex.compile(
    r"(?:[-_+~][A-Za-z0-9]|\.(?:dev|post|rc|so|dll|whl|tar)|(?:rc|[ab])\d|\s{1,20}(?:pypi|py3|h[0-9a-f]{7}))"
)
#: llama.cpp begins a line with the time as 0.12.044.101 and a letter for the level.
_LLAMA_TIME_AFTER = regex.compile(r" [IWEDT] ")
_ADDRESS_BEFORE = regex.compile(
    r"(?ri)(?:\b(?:ip|ipv4|addr(?:ess)?|host(?:name)?|from|to|at|on|by|via|client|peer|server|remote|local|src|dst|source|"
    r"destination|gateway|dns|inet|endpoint|master|bind|listen(?:ing)?|connect(?:ed|ing|ion)?|ssh|scp|ping|dial|tcp|udp|node|nameserver)"
    r"(?:_?(?:ip|addr(?:ess)?))?[\"']?(?: on| to| from| is)?\s*[:=]?\s*[\"'(\[]?|://|@|\bip[:=]\S?)$"
)
_ADDRESS_AFTER = regex.compile(
    r":\d{2,5}(?!\d)|/\d{1,2}(?!\d)|<\d+>| port \d|\s+- |[\"']?\]? (?:GET|POST)|,\d{2,5}(?!\d)"
)


def _is_ipv4(secret: str, before: str, after: str) -> bool:
    octets = secret.split(".")
    if any((len(part) > 1 and part[0] == "0") or int(part) > 255 for part in octets):
        return False
    first = int(octets[0])
    # 0.x and 127.x are every machine's own, 224 and up are no machine's.
    if first in {0, 127} or first >= 224 or secret in _COMMON:
        return False
    if _LLAMA_TIME_AFTER.match(after) and before.rsplit("\n", 1)[-1].strip() == "":
        return False
    if _VERSION_AFTER.match(after) or _VERSION_BEFORE.search(before[-60:]):
        return bool(_ADDRESS_AFTER.match(after)) and before[-1:] not in {"=", ">", "<"} and "://" in before[-12:]
    if ipaddress.ip_address(secret).is_private or first >= 20:
        return True
    # Public and small, such as 12.4.1.0: only where the sentence speaks of an address.
    line = before.rsplit("\n", 1)[-1]
    return bool(_ADDRESS_BEFORE.search(before[-60:]) or _ADDRESS_AFTER.match(after)) or line.strip() == ""


def _is_ipv6(secret: str, before: str, after: str) -> bool:
    text = secret.partition("%")[0]
    try:
        address = ipaddress.IPv6Address(text)
    except ValueError:
        return False
    if address.is_loopback or address.is_unspecified or address.is_multicast:
        return False
    # `c10::` and `dead::beef` are names of C++; an address has more groups, or begins as one.
    groups = [part for part in text.split(":") if part]
    return (
        len(groups) >= 4
        or regex.match(r"(?i)fe80|f[cd][0-9a-f]{2}:|[23][0-9a-f]{3}:|::ffff:|64:ff9b", text) is not None
    )


def _is_mac(secret: str, before: str, after: str) -> bool:
    digits = regex.sub(r"[:-]", "", secret).lower()
    return len(set(digits)) > 1 and any(c in "abcdef" for c in digits)


PATTERNS: tuple[Pattern, ...] = (
    Pattern(
        name="ipv6",
        kind="ip",
        expression=(
            r"(?:(?<![\w:.])|(?<=(?:eth|ib|en|bond|wlan|docker|br|veth|net)[\w.-]{0,12}:))"
            r"(?P<secret>(?:[0-9A-Fa-f]{0,4}:){2,7}+(?:\d{1,3}(?:\.\d{1,3}){3}+|[0-9A-Fa-f]{0,4}+)(?:%[A-Za-z]\w{0,15}+)?+)(?![\w:]|\.\d)"
        ),
        reason="it names a machine and often its place",
        source="https://www.rfc-editor.org/rfc/rfc4291",
        anchors=(":",),
        accept=_is_ipv6,
    ),
    Pattern(
        name="ipv4",
        kind="ip",
        expression=r"(?<![\d.])(?P<secret>\d{1,3}+(?:\.\d{1,3}+){3})(?![\d]|\.\d)",
        reason="it names a machine and often its place",
        source="https://www.rfc-editor.org/rfc/rfc791",
        anchors=(".",),
        accept=_is_ipv4,
    ),
    Pattern(
        name="mac",
        kind="mac",
        expression=r"(?<![\w:-])(?P<secret>[0-9A-Fa-f]{2}(?:(?::[0-9A-Fa-f]{2}){5}|(?:-[0-9A-Fa-f]{2}){5}))(?![\w:-])",
        reason="it names one network card in the world",
        source="https://standards.ieee.org/products-programs/regauth/",
        anchors=(":", "-"),
        accept=_is_mac,
    ),
)
