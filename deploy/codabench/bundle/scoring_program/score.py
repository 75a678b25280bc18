"""Score a submission: `score.py MEASURES [FOLDER]`. input/ref of the folder is an archive, input/res holds the run.

`output/scores.json` gets a number for each measure that is defined, `output/detailed_results.html` the report.
"""

import json
import math
import sys
from pathlib import Path

import swsdask as sws


def score(measures: str, folder: Path) -> None:
    """Write the files of the output. Raises `swsdask.SwsdaskError` for a submission that cannot be scored."""
    runs = sorted(path for path in (folder / "input" / "res").rglob("*") if path.is_file() and path.name != "metadata")
    if len(runs) != 1:
        names = ", ".join(path.name for path in runs) or "none"
        raise sws.SwsdaskError(f"A submission is one file of detections; found {names}.")
    result = sws.score(folder / "input" / "ref", measures.split(","), runs={"submission": runs[0]})
    values = result.leaderboard(measures.split(",")).loc["submission"]
    found = {name: value for name, value in values.items() if math.isfinite(value)}
    (folder / "output" / "scores.json").write_text(json.dumps(found), encoding="utf-8")
    sws.report(result, folder / "output" / "detailed_results.html")
    print(result.to_markdown())


if __name__ == "__main__":
    try:
        score(sys.argv[1], Path(sys.argv[2] if len(sys.argv) > 2 else "/app"))
    except sws.SwsdaskError as error:
        sys.exit(str(error))
