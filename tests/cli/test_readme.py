"""README's commands and its Python do what README shows."""

from __future__ import annotations

from pathlib import Path

from tests.documented import ROOT, blocks, run, run_page

README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_block_runs(tmp_path: Path) -> None:
    run("swsdask demo", tmp_path)
    assert {block.language for block in blocks(README)} == {"sh", "console", "python", "text"}
    run_page(README, tmp_path)


def test_first_screen() -> None:
    lines = README.splitlines()
    assert len(lines) <= 80
    assert any(line.startswith("make demo") for line in lines[:24])
    assert any(line.startswith("make test") for line in lines[:24])
