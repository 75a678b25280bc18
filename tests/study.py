"""The coverage study with its bounds: `python -m tests.study [SEED [EVALUATIONS]]`.

Of simulated evaluations with a known true value, 92 to 98 % of the 95 % intervals must hold it, and tests at 5 % must
reject that equal systems are equal in 3 to 7 %. `model.studies.EVALUATIONS` says why so many are simulated. The
suite itself has a smaller study with wider bounds (`tests/cli/test_simulate_compare.py`).
"""

from __future__ import annotations

import sys

from swsdask.comparison.coverage_study import coverage_study
from swsdask.execution.executor import ThreadExecutor
from swsdask.model.studies import EVALUATIONS, N_QUERIES, REPLICATES, CoverageStudy

COVERS, REJECTS = (0.92, 0.98), (0.03, 0.07)


def outside(made: CoverageStudy) -> list[str]:
    """The shares that are out of their bounds, in words."""
    wrong = []
    for row in made.rows:
        low, high = COVERS if row["name"].endswith("interval") else REJECTS
        if not low <= row["share"] <= high:
            wrong.append(f"{row['measure']}, {row['name']}: {row['share']:.4f}; expected {low} to {high}")
    return wrong


def main(seed: int = 1993, evaluations: int = EVALUATIONS) -> list[str]:
    """Print the shares, and return what is out of bounds."""
    print(f"seed {seed}, {evaluations} evaluations of {N_QUERIES} queries, {REPLICATES} replicates", flush=True)
    made = coverage_study(seed, evaluations, ThreadExecutor(2), n_queries=N_QUERIES, replicates=REPLICATES)
    for row in made.rows:
        print(f"{row['measure']:5} {row['name']:20} {row['share']:.4f}")
    return outside(made)


if __name__ == "__main__":
    faults = main(*map(int, sys.argv[1:]))
    print("\n".join(faults))
    sys.exit(bool(faults))
