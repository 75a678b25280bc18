"""Score runs and check gates: the step of action.yml, whose inputs are environment variables."""

import html
import os
import sys

import swsdask as sws


def lines(name: str) -> list[str]:
    """The lines of an input, without the empty ones."""
    return [line.strip() for line in os.environ.get(name, "").splitlines() if line.strip()]


def score() -> list[str]:
    """Write the result and the summary of the job; return the gates that failed."""
    preset, baseline = (os.environ.get(name) or None for name in ("PRESET", "BASELINE"))
    measures = [name.strip() for name in os.environ.get("MEASURES", "").split(",") if name.strip()]
    runs, gates, out = lines("RUNS") or None, lines("GATES"), os.environ["OUT"]
    evaluation = sws.open(os.environ["REFERENCE"], preset=preset)
    compared = sws.compare(evaluation, baseline=baseline, runs=runs, fail_if=gates) if gates else None
    if measures and compared is not None:  # the report of the comparison is beside these numbers
        measures += [measure for _, measure in compared.measures if measure not in measures]
    result = sws.score(evaluation, measures or None, runs=runs)
    sws.write(result, out)
    summary = [result.to_markdown(), "", f"`{result.manifest['signature']}`", ""]
    failures: list[str] = []
    if compared is not None:
        sws.write_comparison(compared, out)
        failures = [str(failure) for failure in compared.failures]
        said = failures or [f"No gate failed: {'; '.join(gates)}"]
        summary += ["<pre>", *map(html.escape, said), "</pre>"]  # names of systems are no Markdown
    with open(os.environ["GITHUB_STEP_SUMMARY"], "a", encoding="utf-8") as page:
        page.write("\n".join([*summary, ""]))
    return failures


def annotation(text: str) -> str:
    """An error that GitHub shows beside the job: one line, in which a line end is %0A."""
    return "::error title=swsdask::" + text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


if __name__ == "__main__":
    try:
        failed = score()
    except sws.SwsdaskError as error:
        print(annotation(str(error)))
        sys.exit(2)
    for failure in failed:
        print(annotation(failure))
    sys.exit(3 if failed else 0)
