"""The papers' experiments from Python: as the command has them; and the notebook runs."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

import anabranch

NOTEBOOK = Path(__file__).parents[1] / "examples" / "lm3_figure_3.ipynb"


def test_claims_are_those_of_the_command(tmp_path: Path, program: str) -> None:
    claims = anabranch.reproduce("lm3_motivation", quick=True, out=str(tmp_path / "python")).to_pandas()
    command = [program, "reproduce", "lm3_motivation", "--quick", "--out", str(tmp_path / "command")]
    subprocess.run(command, check=True, capture_output=True)
    kept = json.loads((tmp_path / "command" / "lm3_motivation.json").read_text())["measured"]
    cells = [cell for verdict in kept["verdicts"] for cell in verdict["cells"]]
    assert set(claims["trace_hash"]) == {kept["trace_hash"]}
    assert list(claims["measured"]) == [cell["measured"] for cell in cells]
    assert list(claims["sentence"]) == [cell["sentence"] for cell in cells]
    assert (tmp_path / "python" / "runs.parquet").exists()


def test_the_notebook_draws_its_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPLBACKEND", "Agg")
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    names: dict[str, Any] = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            # A notebook of this repository.
            exec("".join(cell["source"]).replace("range(1, 11)", "range(1, 3)"), names)
    for axis in names["axes"]:
        alone, both = (line.get_ydata() for line in axis.lines[:2])
        assert len(alone) == len(both) == 120
        assert alone.mean() > 0.5
        # The failure at 30 s.
        assert both[31:35].mean() < 0.7 * both[20:30].mean()


def test_what_is_wrong_is_told() -> None:
    with pytest.raises(ValueError, match="there is no experiment 'lm4': known are lm3_motivation"):
        anabranch.reproduce("lm4")
    with pytest.raises(ValueError, match="seeds of an experiment follow each other"):
        anabranch.reproduce("maps", seeds=[1, 3], quick=True)
