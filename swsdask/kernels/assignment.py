"""The exact assignment of rows to columns with the greatest sum of weights, and the choice among several optima.

The result prefers early columns, then early rows. Every optimal assignment consists of tight edges (price of row +
price of column = weight), and leaves only rows and columns of price 0 unmatched. To choose an assignment, visit the
columns from the first to the last. Match a column if some optimal assignment that agrees with the choices so far
matches it. Then visit the matched columns again, and give each the first row that such an assignment gives it. The
result depends only on the order of columns and rows.
"""

from __future__ import annotations

import numpy as np
from numba import boolean, int32, int64, void

from swsdask.kernels.compilation import NOTHING_NEW, column, part, several
from swsdask.model.trials import I32, I64

_FAR = np.int64(2**63 - 1)


@part(several(*[int64[::1]] * 4)(column(int64), column(int32), column(int64), int64))
def assign(first_edge: I64, edge_column: I32, edge_weight: I64, n_columns: int) -> tuple[I64, I64, I64, I64]:
    """Match rows with columns, one to one, with the greatest sum of weights. Rows and columns may remain unmatched.

    Row i has the edges first_edge[i] .. first_edge[i + 1], all with weights in (0, 2^61).
    Returns the column of every row (-1: none), the row of every column, and the dual prices of rows and columns. All
    prices are >= 0, and price[row] + price[column] >= weight on every edge. The two sides are equal on matched edges,
    and prices of unmatched rows and columns are 0. So the prices prove that the matching is optimal. An edge can be in
    an optimal matching only if the two sides are equal.

    Rows are added one by one, each along the shortest augmenting path (Dijkstra's algorithm on reduced weights). The
    path ends at an unmatched column, or at a row that is better left unmatched.
    """
    n_rows = len(first_edge) - 1
    column_of, row_of = np.empty(n_rows, np.int64), np.empty(n_columns, np.int64)
    column_of[:], row_of[:] = -1, -1
    row_price = np.zeros(n_rows, np.int64)
    column_price = np.zeros(n_columns, np.int64)
    distance = np.empty(n_columns, np.int64)
    distance[:] = _FAR
    came_from = np.empty(n_columns, np.int64)
    frontier = np.empty(n_columns, np.int64)
    done = np.empty(n_columns, np.int64)
    tree_row = np.empty(n_rows, np.int64)
    tree_distance = np.empty(n_rows, np.int64)
    for new_row in range(n_rows):
        for edge in range(first_edge[new_row], first_edge[new_row + 1]):
            gain = edge_weight[edge] - column_price[edge_column[edge]]
            row_price[new_row] = max(row_price[new_row], gain)
        row, here = np.int64(new_row), np.int64(0)
        n_frontier, n_done, n_tree = 0, 0, 0
        dropped, shortest = row, row_price[row]
        reached = np.int64(-1)
        while True:
            tree_row[n_tree], tree_distance[n_tree] = row, here
            n_tree += 1
            if here + row_price[row] < shortest:
                dropped, shortest = row, here + row_price[row]
            for edge in range(first_edge[row], first_edge[row + 1]):
                target = edge_column[edge]
                far = here + (row_price[row] + column_price[target] - edge_weight[edge])
                if far <= shortest and far < distance[target]:
                    if distance[target] == _FAR:
                        frontier[n_frontier] = target
                        n_frontier += 1
                    distance[target] = far
                    came_from[target] = row
            nearest = -1
            for i in range(n_frontier):
                if nearest < 0 or distance[frontier[i]] < distance[frontier[nearest]]:
                    nearest = i
            if nearest < 0 or distance[frontier[nearest]] > shortest:
                break
            target = frontier[nearest]
            if row_of[target] < 0:
                reached, shortest = target, distance[target]
                break
            n_frontier -= 1
            frontier[nearest] = frontier[n_frontier]
            done[n_done] = target
            n_done += 1
            row, here = row_of[target], distance[target]
        # This keeps the edges of the tree tight, and all others feasible. A row that is dropped has the price 0 then.
        for i in range(n_tree):
            row_price[tree_row[i]] -= shortest - tree_distance[i]
        for i in range(n_done):
            column_price[done[i]] += shortest - distance[done[i]]
        if reached < 0:
            reached = column_of[dropped]
            column_of[dropped] = -1
        while reached >= 0:
            row = came_from[reached]
            row_of[reached] = row
            reached, column_of[row] = column_of[row], reached
        for i in range(n_frontier):
            distance[frontier[i]] = _FAR
        for i in range(n_done):
            distance[done[i]] = _FAR
    return column_of, row_of, row_price, column_price


@part()
def _tight_rows(
    first_edge: I64, edge_column: I32, edge_weight: I64, row_price: I64, column_price: I64
) -> tuple[I64, I32]:
    """Return the tight edges by column: where the rows of each column begin, and these rows, ascending."""
    first = np.zeros(len(column_price) + 1, np.int64)
    n_rows = len(row_price)
    for row in range(n_rows):
        for edge in range(first_edge[row], first_edge[row + 1]):
            target = edge_column[edge]
            first[target + 1] += row_price[row] + column_price[target] == edge_weight[edge]
    for target in range(len(column_price)):
        first[target + 1] += first[target]
    rows = np.empty(first[-1], np.int32)
    filled = first[:-1].copy()
    for row in range(n_rows):
        for edge in range(first_edge[row], first_edge[row + 1]):
            target = edge_column[edge]
            if row_price[row] + column_price[target] == edge_weight[edge]:
                rows[filled[target]] = row
                filled[target] += 1
    return first, rows


@part(
    boolean(
        *[int64] * 4,
        column(int64),
        column(int32),
        column(int64),
        column(int64),
        *[int64[::1]] * 5,
    ),
    **NOTHING_NEW,
)
def _search(
    start: int,
    fixed: int,
    goal: int,
    stamp: int,
    first: I64,
    tight: I32,
    row_price: I64,
    column_price: I64,
    column_of: I64,
    row_of: I64,
    seen: I64,
    came_from: I64,
    queue: I64,
) -> bool:
    """Match the column `start`, which has no row, by shifting other columns along tight edges; return whether it is.

    Without a goal (-1), the last row of the shift is unmatched before, or held by a column after `start` of price 0,
    which becomes unmatched. With a goal, the last row is `goal`, and columns up to `fixed` do not change. Rows that are
    `seen` with this stamp are dead ends. An extra column, len(row_of), represents "unmatched"; its tight rows are those
    of price 0.
    """
    nobody, vacant, last = len(row_of), -1, -1
    n_queue, n_taken, taker = 0, 0, start
    while last < 0:
        begin, end = (0, len(column_of)) if taker == nobody else (first[taker], first[taker + 1])
        for i in range(begin, end):
            row = i if taker == nobody else tight[i]
            holder = column_of[row]
            if seen[row] == stamp or 0 <= holder <= fixed or (taker == nobody and row_price[row] > 0):
                continue
            seen[row] = stamp
            came_from[row] = taker
            queue[n_queue] = row
            n_queue += 1
            if row == goal or (goal < 0 and (holder < 0 or (holder > start and column_price[holder] == 0))):
                last = row
                break
        if last < 0:
            if n_taken == n_queue:
                return False
            taker = column_of[queue[n_taken]]
            if taker < 0:
                taker = nobody
                vacant = queue[n_taken] if vacant < 0 else vacant
            n_taken += 1
    if column_of[last] >= 0:
        row_of[column_of[last]] = -1
    row = last
    while True:
        taker = came_from[row]
        if taker == nobody:
            column_of[row] = -1
            freed = vacant
        else:
            freed = row_of[taker]
            column_of[row], row_of[taker] = taker, row
        if taker == start:
            return True
        row = freed


@part(
    void(
        column(int64),
        column(int32),
        column(int64),
        int64[::1],
        int64[::1],
        column(int64),
        column(int64),
    )
)
def settle(
    first_edge: I64,
    edge_column: I32,
    edge_weight: I64,
    column_of: I64,
    row_of: I64,
    row_price: I64,
    column_price: I64,
) -> None:
    """Turn the optimal assignment that `assign` found into the preferred one, in place."""
    first, tight = _tight_rows(first_edge, edge_column, edge_weight, row_price, column_price)
    n_matched = 0
    for target in column_of:
        n_matched += target >= 0
    # If every tight edge is matched, no other assignment is optimal.
    if len(tight) == n_matched:
        return
    seen = np.zeros(len(column_of), np.int64)
    came_from = np.empty(len(column_of), np.int64)
    queue = np.empty(len(column_of), np.int64)
    stamp = 1
    for target in range(len(row_of)):
        if row_of[target] < 0:
            # After a failure the stamp remains, because the rows seen are dead ends for all later columns too.
            stamp += _search(
                target, -1, -1, stamp, first, tight, row_price, column_price, column_of, row_of, seen, came_from, queue
            )
    for target in range(len(row_of)):
        if row_of[target] < 0:
            continue
        stamp += 1
        for i in range(first[target], first[target + 1]):
            row, freed = int(tight[i]), row_of[target]
            if row >= freed:
                break
            shifted = column_of[row]
            if 0 <= shifted < target:
                continue
            column_of[row], row_of[target], column_of[freed] = target, row, -1
            if _search(
                len(row_of) if shifted < 0 else shifted,
                target,
                freed,
                stamp,
                first,
                tight,
                row_price,
                column_price,
                column_of,
                row_of,
                seen,
                came_from,
                queue,
            ):
                break
            column_of[row], row_of[target], column_of[freed] = shifted, freed, target
