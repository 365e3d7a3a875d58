"""Rule files: what is refused, and that the complaint names the file and the line."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from oortriage.errors import RuleError
from oortriage.evidence.loader import (
    all_rules,
    built_in_rules,
    compile_rules,
    load_folder,
    load_rule,
    rule_file,
    rules_folder,
    users_rules,
)
from oortriage.evidence.matcher import Matcher
from oortriage.evidence.rule import Rule
from tests.evidence._rules import VALID


def written(folder: Path, text: str, name: str = "ZZ900.toml") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def line_of(text: str, start: str) -> int:
    return next(number for number, line in enumerate(text.splitlines(), 1) if line.startswith(start))


def test_a_rule_is_read_with_its_family_and_path(tmp_path: Path) -> None:
    path = written(tmp_path / "gizmos", VALID)
    rule = load_rule(path)
    assert (rule.code, rule.role, rule.resource, rule.cause) == (
        "ZZ900",
        "failure",
        "device_memory",
        "capacity",
    )
    assert rule.pattern[0].captures == {"required_bytes": "bytes", "limit_bytes": "bytes"}
    assert rule.pattern[0].quality == "exact"
    assert rule.sample[0].numbers == {"required_bytes": 300, "limit_bytes": 200}
    assert rule.remedy[0].safety == "safe"
    assert (rule.family, rule.path) == ("gizmos", str(path))
    assert load_rule(path, family="mine").family == "mine"


@pytest.mark.parametrize(
    ("old", "new", "line_start", "words"),
    [
        ('name = "gizmo-full"', 'name = "gizmo-full', "name", "not TOML"),
        ('title = "The gizmo is full"', "title = 5", "title", "Expected `str`"),
        ('role = "failure"', 'role = "oops"', "role", "'oops'"),
        ('resource = "device_memory"', 'resource = "vram"', "resource", "'vram'"),
        ('cause = "capacity"', 'colour = "red"', "colour", "unknown field `colour`"),
        ('code = "ZZ900"', 'code = "gizmo"', "code", "'gizmo'"),
        ('code = "ZZ900"', 'code = "ZZ90"', "code", "'ZZ90'"),
        ('anchors = ["gizmo overflow"]', "anchors = []", "anchors", "at least one literal"),
        ('anchors = ["gizmo overflow"]', 'anchors = ["giz"]', "anchors", "4 characters"),
        ('resource = "device_memory"', 'resource = "none"', "role", "must name a resource"),
        (r"(?P<limit_bytes>\d+)", r"(?P<limit_bytes>\d+", "regex", "regex is not valid"),
        (r"(?P<limit_bytes>\d+)", r"(?P<limit_bytes>\d{99999999999})", "regex", "regex is not valid"),
        ("'''gizmo overflow", "'''(?<!no )gizmo overflow", "regex", "write [ ] for one"),
        ('limit_bytes = "bytes" }', 'limit_bytes = "byte" }', "regex", "no type 'byte'"),
        (r"(?P<limit_bytes>\d+)", r"\d+", "captures", "no group 'limit_bytes'"),
        (', limit_bytes = "bytes" }', " }", "regex", "limit_bytes have no type"),
        ("[[pattern]]", "[[patterns]]", "[[patterns]]", "unknown field `patterns`"),
    ],
)
def test_each_mistake_is_told_with_file_and_line(
    tmp_path: Path, old: str, new: str, line_start: str, words: str
) -> None:
    text = VALID.replace(old, new, 1)
    assert text != VALID
    path = written(tmp_path, text)
    with pytest.raises(RuleError) as caught:
        load_rule(path)
    assert str(caught.value).startswith(f"{path}:{line_of(text, line_start)}: ")
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_group_that_marks_the_message_needs_no_type(tmp_path: Path) -> None:
    path = written(tmp_path, VALID.replace("'''gizmo overflow", "'''died: (?P<at>gizmo) overflow"))
    assert set(load_rule(path).pattern[0].captures) == {"required_bytes", "limit_bytes"}


def test_a_missing_key_is_told_by_name(tmp_path: Path) -> None:
    path = written(tmp_path, VALID.replace('software = "gizmo"\n', ""))
    with pytest.raises(RuleError, match=r"ZZ900\.toml:\d+: .*`software`"):
        load_rule(path)


def test_a_rule_error_ends_the_command_with_two() -> None:
    assert RuleError("x").exit_code == 2


@pytest.mark.parametrize("content", [None, b"\xff\xfe\x00code"])
def test_an_unreadable_file_is_told_by_name(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "ZZ900.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(RuleError, match=re.escape(str(path))):
        load_rule(path)


@pytest.mark.parametrize("regex", ["(?<!not )gizmo overflow", "(?<=my )gizmo overflow"])
def test_a_rule_that_loads_can_be_matched(tmp_path: Path, regex: str) -> None:
    """A space matches a run of any length, which no look-behind of Python can hold.

    Either the loader says so, with file and line, or the matcher gets along with it.
    """
    text = re.sub(r"regex = '''.*?'''", lambda _: f"regex = '''{regex}'''", VALID)
    text = re.sub(r"captures = .*\n", "", text)
    path = written(tmp_path, text)
    complaint = ""
    try:
        found = Matcher([load_rule(path)]).find("my gizmo overflow")
    except RuleError as problem:
        found, complaint = [], str(problem)
    assert complaint.startswith(f"{path}:{line_of(text, 'regex')}: ") or len(found) == 1


def test_a_folder_is_read_in_order_of_code(tmp_path: Path) -> None:
    for family, code in (("b", "ZZ901"), ("a", "ZZ903"), ("c", "AA900")):
        written(tmp_path / family, VALID.replace("ZZ900", code), f"{code}.toml")
    (tmp_path / "notes.md").write_text("not a rule", encoding="utf-8")
    rules = load_folder(tmp_path)
    assert [(rule.code, rule.family) for rule in rules] == [
        ("AA900", "c"),
        ("ZZ901", "b"),
        ("ZZ903", "a"),
    ]


def test_two_rules_of_one_code_are_refused_by_both_names(tmp_path: Path) -> None:
    first = written(tmp_path / "a", VALID)
    second = written(tmp_path / "b", VALID)
    with pytest.raises(RuleError) as caught:
        load_folder(tmp_path)
    assert str(caught.value).startswith(f"{second}:1: ")
    assert str(first) in str(caught.value)


def test_a_folder_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RuleError, match="no such folder"):
        load_folder(tmp_path / "nowhere")


def test_the_shipped_rules_have_codes_of_their_own() -> None:
    codes = [rule.code for rule in built_in_rules()]
    assert len(codes) == len(set(codes))
    assert len(codes) == len(list(rules_folder().rglob("*.toml")))
    assert "SM101" in codes


def test_shipped_rules_are_loaded_once() -> None:
    assert built_in_rules() is built_in_rules()


def test_a_users_rule_replaces_the_shipped_one_of_its_code(tmp_path: Path) -> None:
    written(tmp_path, VALID.replace("ZZ900", "SM101"), "SM101.toml")
    written(tmp_path, VALID)
    shipped, joined = built_in_rules(), all_rules([tmp_path])
    assert len(joined) == len(shipped) + 1
    by_code = {rule.code: rule for rule in joined}
    assert by_code["SM101"].title == "The gizmo is full"
    assert by_code["ZZ900"].title == "The gizmo is full"
    assert all(by_code[rule.code] is rule for rule in shipped if rule.code != "SM101")


def test_of_two_folders_the_later_one_wins(tmp_path: Path) -> None:
    written(tmp_path / "a", VALID)
    written(tmp_path / "b", VALID.replace("The gizmo is full", "Second"))
    joined = {rule.code: rule for rule in all_rules([tmp_path / "a", tmp_path / "b"])}
    assert joined["ZZ900"].title == "Second"


def test_the_compiled_file_holds_the_same_rules(tmp_path: Path) -> None:
    folder = tmp_path / "rules"
    written(folder / "gizmos", VALID)
    written(folder / "others", VALID.replace("ZZ900", "ZZ901"), "ZZ901.toml")
    compiled = msgspec.json.decode(compile_rules(folder), type=list[Rule])
    assert [rule.path for rule in compiled] == ["rules/gizmos/ZZ900.toml", "rules/others/ZZ901.toml"]
    bare = [msgspec.structs.replace(rule, path="") for rule in compiled]
    assert bare == [msgspec.structs.replace(rule, path="") for rule in load_folder(folder)]


def test_a_bad_rule_is_not_compiled(tmp_path: Path) -> None:
    written(tmp_path, VALID.replace('role = "failure"', 'role = "oops"'))
    with pytest.raises(RuleError):
        compile_rules(tmp_path)


def test_a_shipped_rules_own_file_is_found() -> None:
    rule = next(rule for rule in built_in_rules() if rule.code == "SM101")
    assert load_rule(rule_file(rule)).code == "SM101"


def test_a_rule_of_one_s_own_is_one_s_own_also_as_a_copy(tmp_path: Path) -> None:
    """Same code, same text: its file is the user's, and it is run as the user's."""
    shipped = next(rule for rule in built_in_rules() if rule.code == "SM101")
    path = written(tmp_path / "triton", rule_file(shipped).read_text(encoding="utf-8"), "SM101.toml")
    rules = all_rules([tmp_path])
    assert users_rules(rules) == {"SM101"}
    assert rule_file(next(rule for rule in rules if rule.code == "SM101")) == path
    assert users_rules(built_in_rules()) == set()


def test_a_shipped_rule_s_file_is_not_looked_for_in_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compiled rules have relative paths."""
    compiled = Rule(**{name: getattr(built_in_rules()[0], name) for name in Rule.__struct_fields__})
    compiled = msgspec.structs.replace(compiled, path="rules/gizmos/ZZ900.toml")
    written(tmp_path / "rules" / "gizmos", VALID)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("oortriage.evidence.loader.built_in_rules", lambda: (compiled,))
    assert rule_file(compiled) == rules_folder().parent / "rules" / "gizmos" / "ZZ900.toml"
