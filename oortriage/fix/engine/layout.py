"""What an engine run finds on its module path: the policy's file, the plugins, the program."""

from __future__ import annotations

import shutil
from pathlib import Path

from oortriage.fix.engine import client

#: The program's name in the folder: unlike any module that vLLM or Python might look for.
PROGRAM = "oortriage_engine_client.py"
_METADATA = "Metadata-Version: 2.1\nName: oortriage-engine-check\nVersion: 0.1\n"
_ENTRY_POINTS = """[vllm.general_plugins]
oortriage_engine_plays = oortriage.fix.engine.player:register
oortriage_tile_policy = oortriage.fix.plugin:register
"""


def lay_out(folder: Path) -> Path:
    """Lay out a folder that goes first on vLLM's module path; nothing is installed there.

    Only the package itself is linked: the rest of our environment must not come before vLLM's own.

    Returns:
        The program to run.
    """
    about = folder / "oortriage_engine_check-0.1.dist-info"
    about.mkdir(parents=True, exist_ok=True)
    (about / "METADATA").write_text(_METADATA, encoding="utf-8")
    (about / "entry_points.txt").write_text(_ENTRY_POINTS, encoding="utf-8")
    (folder / "oortriage").symlink_to(Path(client.__file__).resolve().parents[2], target_is_directory=True)
    program = folder / PROGRAM
    shutil.copyfile(client.__file__, program)
    return program
