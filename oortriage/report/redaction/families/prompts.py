"""Prompts in the request logs of serving engines: what users wrote."""

from __future__ import annotations

from collections.abc import Iterator

import regex

from oortriage.report.redaction.pattern import Pattern

_REASON = "it is what a user wrote"
_VLLM = "https://docs.vllm.ai/en/latest/cli/serve/"
_OPENAI = "https://platform.openai.com/docs/api-reference/chat"
_TEXT = (
    r"(?:\\\"(?P<secret>(?:[^\"\\\n]|\\(?!\")[^\n])++)|\"(?P<secret>(?:[^\"\\\n]|\\[^\n])++)"
    r"|(?<![A-Za-z0-9])'(?P<secret>(?:[^'\\\n]|\\[^\n])++))"
)
#: Keys whose text is a user's.
_KEYS = (
    r"(?:(?:negative|positive|system|user|formatted|full|final|input)_?)?prompts?|inputs|input_text|prompt_text"
    r"|chat_history|user_message|user_input|generated_text|system_instruction"
)

_LISTS = regex.compile(
    r"(?i)(?<![A-Za-z0-9])(?P<key>messages|conversation|conversations|chat_history|history|prompts?|inputs)\\*[\"']?\s{0,4}[:=]\s{0,4}\["
)
_MARK = regex.compile(r"\\*[\"']|[\[\]]")
#: A list that is not closed within so many characters was cut: it ends with its line.
_LONGEST = 262_144


def _lists(text: str) -> Iterator[tuple[int, int]]:
    """Find the insides of lists of messages and prompts; brackets within quotes do not count."""
    position = 0
    while found := _LISTS.search(text, position):
        start = found.end()
        position = end = _closing(text, start)
        inside = text[start:end]
        # `inputs=[1, 3]` is shapes and `prompt=[...]` a cut repr: only text in quotes was written by a user.
        if any(quote in inside for quote in "\"'") and not _SHAPES.fullmatch(inside.strip()):
            yield start, end


_SHAPES = regex.compile(r"[\d\s,.x()\[\]'\"-]*+")


def _closing(text: str, start: int) -> int:
    depth, quote = 1, ""
    for mark in _MARK.finditer(text, start, min(len(text), start + _LONGEST)):
        word = mark.group()
        if quote:
            quote = "" if word == quote else quote
        elif word == "[":
            depth += 1
        elif word == "]":
            depth -= 1
            if depth == 0:
                return int(mark.start())
        else:
            quote = str(word)
    line = text.find("\n", start)
    return len(text) if line < 0 else line


def _text(secret: str, before: str, after: str) -> bool:
    return any(c.isalpha() for c in secret) and secret.strip().lower() not in {"none", "null", "true", "false", "..."}


def _sentence(secret: str, before: str, after: str) -> bool:
    return _text(secret, before, after) and not regex.match(
        r"(?i)[\d.,]+\s*(?:tok|ms|s\b|chars?|/)|[\d.,]+\s*$|eval|processing|executed|length|tokens?|too long|none|\[|<\||[\"']",
        secret,
    )


PATTERNS: tuple[Pattern, ...] = (
    Pattern(
        name="vllm-request",
        kind="prompt",
        # repr() may be shortened by the engine, so the next field ends the text, not only the quote.
        expression=(
            r"Received request [^\s:]{1,200}: prompt: (?:'(?P<secret>(?:(?!Received request |', (?:params|sampling_params"
            r"|prompt_token_ids|lora_request|prompt_embeds))[^\n])++)|\"(?P<secret>(?:(?!Received request |\", (?:params"
            r"|sampling_params|prompt_token_ids|lora_request|prompt_embeds))[^\n])++))"
        ),
        reason=_REASON,
        source=_VLLM,
        anchors=("received request",),
        accept=lambda secret, before, after: secret not in {"'", '"'},
    ),
    Pattern(
        name="token-ids",
        kind="prompt",
        expression=(
            r"(?:prompt_token_ids|prompt_token_id|input_ids|origin_input_ids|output_ids|output_token_ids|token_ids|prompt_logprobs)"
            r"\\*[\"']?\s{0,4}[:=]\s{0,4}(?:array\('\w', ?|tensor\()?\[{1,2}(?P<secret>\d{1,9}(?:,\s{0,4}\d{1,9}){2,}+(?:,?\s{0,4}\.\.\.)?)"
        ),
        reason="numbers of words: anybody can turn them into the text",
        source=_VLLM,
        anchors=("token_id", "input_ids", "output_ids"),
    ),
    Pattern(
        name="request-lists",
        kind="prompt",
        expression="",
        reason=_REASON,
        source=_OPENAI,
        anchors=("messages", "conversation", "history", "prompt", "inputs"),
        find=_lists,
    ),
    Pattern(
        name="keyed-prompt",
        kind="prompt",
        expression=rf"(?i)(?<![A-Za-z0-9-])(?:{_KEYS})\\?[\"']?\s{{0,4}}[:=]\s{{0,4}}{_TEXT}",
        reason=_REASON,
        source=_OPENAI,
        anchors=("prompt", "inputs", "input_text", "history", "user_", "generated_text", "instruction"),
        accept=_text,
    ),
    Pattern(
        name="prompt-flag",
        kind="prompt",
        expression=rf"(?i)(?<![\w-])--(?:{_KEYS.replace('_', '[-_]')})[ =]{_TEXT}",
        reason=_REASON,
        source="https://github.com/ggml-org/llama.cpp/blob/master/tools/main/README.md",
        anchors=("--",),
        accept=_text,
    ),
    Pattern(
        name="llama-cli-prompt",
        kind="prompt",
        expression=rf"(?:llama-|llama\.cpp|ollama|/main|mlx_lm)[^\n]{{0,300}}?\s-p {_TEXT}",
        reason=_REASON,
        source="https://github.com/ggml-org/llama.cpp/blob/master/tools/main/README.md",
        anchors=(" -p ",),
        accept=_text,
    ),
    Pattern(
        name="sglang-request",
        kind="prompt",
        expression=rf"(?:GenerateReqInput|EmbeddingReqInput|TokenizedGenerateReqInput)\([^\n]{{0,400}}?(?:text|input_text)={_TEXT}",
        reason=_REASON,
        source="https://docs.sglang.ai/advanced_features/server_arguments.html",
        anchors=("reqinput(",),
        accept=_text,
    ),
    Pattern(
        name="sglang-answer",
        kind="prompt",
        expression=rf"(?:out=\{{|[\"']meta_info[\"'][^\n]{{0,300}}?|\bFinish: [^\n]{{0,300}}?)[\"']text[\"']: {_TEXT}",
        reason="what the model answered to a user",
        source="https://docs.sglang.ai/advanced_features/server_arguments.html",
        anchors=("text",),
        accept=_text,
    ),
    Pattern(
        name="chat-content",
        kind="prompt",
        expression=rf"\\*[\"']role\\*[\"']\s{{0,4}}[:=]\s{{0,4}}\\*[\"']\w{{1,16}}\\*[\"'],\s{{0,40}}\\*[\"'](?:content|text)\\*[\"']\s{{0,4}}:\s{{0,4}}{_TEXT}",
        reason=_REASON,
        source=_OPENAI,
        anchors=("role",),
        accept=_text,
    ),
    Pattern(
        name="chat-content-first",
        kind="prompt",
        expression=rf"[\"']content[\"']\s{{0,4}}:\s{{0,4}}{_TEXT}[\"'],\s{{0,40}}[\"']role[\"']",
        reason=_REASON,
        source=_OPENAI,
        anchors=("role",),
        accept=_text,
    ),
    Pattern(
        name="chat-template",
        kind="prompt",
        expression=r"<\|(?:im_start\|>|start_header_id\|>)(?:user|system|assistant)(?:<\|end_header_id\|>)?(?:\\n|\s){0,4}(?P<secret>(?:[^<\n]|<(?!\|))++)",
        reason="the prompt as the model reads it",
        source="https://huggingface.co/docs/transformers/chat_templating",
        anchors=("<|",),
        accept=_text,
    ),
    Pattern(
        name="prompt-line",
        kind="prompt",
        expression=r"(?im)(?<![^\n\s\]|>-])(?:(?:negative|positive|system|user|input|your) )?prompt: ++(?P<secret>[^\n\"'\s][^\n]++)",
        reason=_REASON,
        source="https://github.com/AUTOMATIC1111/stable-diffusion-webui/wiki/Features",
        anchors=("prompt: ",),
        accept=_sentence,
    ),
)
