"""A folder's data files are listed as a wheel's record lists them: paths in the package, no subfolders."""

from __future__ import annotations

from pathlib import Path

from oortriage.kernels.source.find import open_source
from oortriage.kernels.source.folder import folder_spec


def test_names(tmp_path: Path) -> None:
    configs = tmp_path / "lib" / "configs"
    (configs / "deeper").mkdir(parents=True)
    for name in ("E=8.json", "E=1.json"):
        (configs / name).write_text("{}")
    source = open_source(folder_spec("lib", tmp_path, "1.0"))
    assert source.names("lib/configs") == ["lib/configs/E=1.json", "lib/configs/E=8.json"]
    assert source.names("lib/absent") == []
