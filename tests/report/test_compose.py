"""A report as data: every section where it belongs, and what was not run said as plainly as what was."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from syrupy.assertion import SnapshotAssertion

from oortriage.report.compose import compose
from oortriage.report.document import Block, Code, Document, Figure, Items, Paragraph, Table
from oortriage.report.material import Material
from oortriage.report.redaction import Redactor, Replacement
from oortriage.triage.diagnosis import BillTerm, BillView, Diagnosis, Evidence, Prescription, RuledOut, WillNotHelp
from tests.report._composed import KEYS, everything, verification
from tests.report._made import made
from tests.report.test_replay import REPRODUCTIONS, experiment, reproduction


def blocks(document: Document, key: str) -> list[Block]:
    return next((one.blocks for one in document.sections if one.key == key), [])


def told(document: Document, key: str) -> list[str]:
    return [text for one in blocks(document, key) if isinstance(one, Items) for text in one.items]


def table(document: Document, key: str) -> list[list[str]]:
    return next(one.rows for one in blocks(document, key) if isinstance(one, Table))


def test_sections_stand_in_the_reader_s_order_and_only_where_there_is_something_to_say() -> None:
    assert [one.key for one in compose(everything("x")).sections] == list(KEYS)
    assert [one.key for one in compose(Material(made(resource="none"))).sections] == [
        "verdict", "reproduce", "not_verified", "made_with",
    ]  # fmt: skip


def test_verdict_figures_and_making_are_never_cut() -> None:
    least = {one.key for one in compose(everything("x")).sections if one.importance == 0}
    assert least == {"verdict", "figures", "made_with"}


def test_the_verdict_is_one_sentence(every: list[Diagnosis]) -> None:
    for diagnosis in every:
        document = compose(Material(diagnosis))
        assert document.verdict.endswith("."), diagnosis.file
        assert ". " not in document.verdict, diagnosis.file
        assert len(document.title) <= 120
        assert "\n" not in document.title


@pytest.mark.parametrize(
    ("numbers", "over"),
    [
        ({"required_bytes": 81_920, "limit_bytes": 65_536}, ["over by", "16,384 B, 25.0% more than there is", ""]),
        ({"required_threads": 512, "limit_threads": 256}, ["over by", "256, 100.0% more than there is", ""]),
        ({"requested_bytes": 3 << 30, "free_bytes": 1 << 30}, ["over by", "2,147,483,648 B, 200.0% more than there is", "2.00 GiB"]),
        ({"requested_bytes": 5, "free_bytes": 0}, ["over by", "5 B", ""]),
    ],
)  # fmt: skip
def test_the_excess_is_computed(numbers: dict[str, int], over: list[str]) -> None:
    assert table(compose(Material(made(numbers=numbers))), "figures")[-1] == over


def test_there_is_no_excess_where_more_was_free_than_asked_for() -> None:
    document = compose(Material(made(numbers={"requested_bytes": 5, "free_bytes": 9})))
    assert [row[0] for row in table(document, "figures")] == ["requested", "free"]


def test_evidence_is_code_with_file_and_line_the_root_first() -> None:
    lines = [
        Evidence("a.log", 9, 1, "wrapped", "wrapper"),
        Evidence("a.log", 7, 1, "out of resource", "root"),
        Evidence("b.log", 8, 1, "again\nb.log:1: forged", "same_failure"),
    ]
    document = compose(Material(made(evidence=lines, ruled_out=[RuledOut("kv_cache", "it was allocated", 4)])))
    code = [one for one in blocks(document, "evidence") if isinstance(one, Code)]
    assert [one.text for one in code] == [
        "a.log:7: out of resource",
        "b.log:8: again\\nb.log:1: forged",
        "a.log:9: wrapped",
    ]
    assert told(document, "evidence") == ["not kv cache: it was allocated (line 4)"]


def test_a_giant_line_of_evidence_is_cut_round_its_message() -> None:
    text = "x" * 5_000_000 + "OUT OF RESOURCE" + "y" * 5_000_000
    (code,) = blocks(
        compose(Material(made(evidence=[Evidence("a.log", 1, 1, text, "root", offset=5_000_000)]))), "evidence"
    )
    assert isinstance(code, Code)
    assert "OUT OF RESOURCE" in code.text
    assert len(code.text) < 5_000


def test_the_ledger_is_a_picture_with_its_drawing_in_characters_and_a_table_that_adds_up() -> None:
    document = compose(Material(made(), reproduction()))
    (figure,) = [one for one in blocks(document, "ledger") if isinstance(one, Figure)]
    assert figure.svg.startswith("<svg")
    assert figure.alt == "Shared memory of one block: 81,920 B needed, limit 65,536 B: 16,384 B over the limit."
    assert "┌" in figure.text
    rows = table(document, "ledger")
    assert {row[1].split()[0]: row[4] for row in rows[:-1]} == {
        "K": "32,768 B",
        "V": "32,768 B",
        "Q": "16,384 B",
        "P": "2,048 B",
    }
    assert rows[-1][4] == "81,920 B"
    assert rows[0][6].startswith("vllm/attention/ops/triton_unified_attention.py:214 K_load")


@pytest.mark.parametrize("result", [None, REPRODUCTIONS["failed"]])
def test_a_bill_stands_in_where_nothing_was_compiled(result: Any) -> None:
    bill = BillView("arithmetic", 96, [BillTerm("Q", "Q 8x4x3", 96)], {}, "by arithmetic")
    document = compose(Material(made(bill=bill), result))
    assert table(document, "ledger") == [["Q 8x4x3", "96"], ["sum", "96"]]
    assert Paragraph("by arithmetic") in blocks(document, "ledger")


def test_the_experiment_shows_every_cell() -> None:
    document = compose(Material(made(), experiment=experiment()))
    (figure,) = [one for one in blocks(document, "experiment") if isinstance(one, Figure)]
    assert figure.alt == "Bytes of one block over num_stages, TILE_SIZE: 2 of 5 settings fit."
    assert "<svg" in figure.svg
    assert "49,152" in figure.text
    assert table(document, "experiment")[0][:4] == ["1", "16", "49,152", "yes"]
    assert table(document, "experiment")[-1] == ["1", "17", "-", "?", "arange's range must be a power of 2"]


def test_verification_shows_layers_engine_and_impact() -> None:
    document = compose(Material(made(), verification=verification("as said")))
    assert [row[1] for row in table(document, "verification")] == ["passed", "passed", "FAILED", "not run", "not run"]
    assert any("81,920 of 65,536 bytes" in one for one in told(document, "verification"))
    assert "49,152" in str([one for one in blocks(document, "verification") if isinstance(one, Table)][1].rows)


def test_changes_are_code_to_copy_the_first_first() -> None:
    changes = [Prescription("--a", "helps.", "speed", "costs_speed", "look."), Prescription("--b", "helps too")]
    assert blocks(compose(Material(made(prescriptions=changes))), "change") == [
        Code("--a", "1. helps; cost: speed; costs speed; verify: look."),
        Code("--b", "2. helps too."),
    ]


def test_what_will_not_help_says_why() -> None:
    document = compose(Material(made(will_not_help=[WillNotHelp("a larger card", "the limit is of one block")])))
    assert told(document, "will_not_help") == ["a larger card: the limit is of one block"]


def test_commands_are_given_as_run_and_one_at_least() -> None:
    given = blocks(
        compose(Material(made(), commands=["oortriage reproduce 'a b'", "oortriage experiment 'a b'"])), "reproduce"
    )[0]
    assert given == Code("oortriage reproduce 'a b'\noortriage experiment 'a b'", language="shell")
    assert blocks(compose(Material(made(file="a b.log"))), "reproduce")[0] == Code(
        "oortriage analyze 'a b.log'", language="shell"
    )


@pytest.mark.parametrize(
    ("material", "words"),
    [
        (Material(made()), ["reproduction not run", "experiment not run", "verification not run"]),
        (Material(made(resource="kv_cache")), ["reproduction not run: no kernel", "experiment not run: no kernel", "verification not run: there is no patch"]),
        (Material(made(missing=["the whole log"])), ["the log lacks: the whole log"]),
        (Material(made(), reproduction()), ["reproduction: not launched on a card", "experiment not run"]),
        (Material(made(), REPRODUCTIONS["computed"]), ["reproduction: there is no printed figure"]),
        (Material(made(), REPRODUCTIONS["not_reproduced"]), ["reproduction: the printed figure was not reproduced"]),
        (Material(made(), experiment=experiment()), ["experiment: no setting was launched on a card"]),
        (Material(made(), verification=verification()), ["layer engine: not run, needs --engine", "layer cost: not run"]),
    ],
)  # fmt: skip
def test_what_was_not_verified_is_said(material: Material, words: list[str]) -> None:
    lines = told(compose(material), "not_verified")
    for one in words:
        assert any(one in line for line in lines), one


def test_a_failed_layer_is_not_among_what_was_not_run() -> None:
    assert not any(
        "layer kernel" in one for one in told(compose(Material(made(), verification=verification())), "not_verified")
    )


def test_what_was_redacted_is_counted_and_never_shown() -> None:
    replaced = [
        Replacement("user", "<user-1>", 3),
        Replacement("user", "<user-2>", 2),
        Replacement("host", "<host-1>", 1),
    ]
    assert told(compose(Material(made()), replaced), "made_with")[1:] == [
        "redacted: user, 2 different, in 5 places",
        "redacted: host, 1 different, in 1 place",
    ]
    assert told(compose(Material(made())), "made_with")[1:] == ["redacted: nothing was replaced"]


def test_what_the_redactor_takes_out_is_gone_from_every_section() -> None:
    token = "ghp_" + "a1B2c3D4e5F6" * 3
    redactor = Redactor()
    material = redactor.struct(everything(f" token {token} of jane@corp.example "))
    document = compose(material, redactor.replaced)
    assert token not in str(document)
    assert "jane@corp.example" not in str(document)
    counted = " ".join(told(document, "made_with"))
    assert "redacted: token, 1 different" in counted
    assert "redacted: email, 1 different" in counted


def test_the_environment_names_the_lines(reported: dict[str, Diagnosis]) -> None:
    document = compose(Material(reported["shared_memory"], environment={"python": "3.12"}))
    assert ["gpu", "Tesla T4", "log.txt:19", "FA124", "0.97"] in table(document, "environment")
    machine = [one for one in blocks(document, "environment") if isinstance(one, Table)][1]
    assert machine.rows == [["python", "3.12"]]


def test_a_document_survives_json() -> None:
    document = compose(everything("x"))
    assert msgspec.json.decode(msgspec.json.encode(document), type=Document) == document


@pytest.mark.parametrize("name", ["shared_memory", "device_memory", "kv_cache", "undetermined"])
def test_document_is_as_reviewed(name: str, reported: dict[str, Diagnosis], snapshot: SnapshotAssertion) -> None:
    assert msgspec.to_builtins(compose(Material(reported[name]))) == snapshot
