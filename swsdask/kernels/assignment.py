"""Exact assignment: the pairs of rows and columns with the greatest sum of weights."""

from __future__ import annotations

import numpy as np
from numba import njit

from swsdask.model.trials import I32, I64

_FAR = np.int64(2**63 - 1)


@njit()
def assign(first_edge: I64, edge_column: I32, edge_weight: I64, n_columns: int) -> tuple[I64, I64, I64, I64]:
    """Match rows with columns, one to one, so that the sum of the weights is the greatest; both may stay unmatched.

    Row i has the edges first_edge[i] .. first_edge[i + 1], all of weights in (0, 2^61).
    Returns the column of every row (-1: none), the row of every column, and the dual prices of rows and columns: all
    are >= 0, price[row] + price[column] >= weight on every edge, equal on matched ones, 0 for what is unmatched. They
    prove that the matching is optimal, and an edge can be in an optimal matching only where they are equal.

    Rows enter one after the other, each along the shortest augmenting path (Dijkstra on reduced weights), which ends
    at an unmatched column or at a row that is better left unmatched.
    """
    n_rows = len(first_edge) - 1
    column_of = np.full(n_rows, -1, np.int64)
    row_of = np.full(n_columns, -1, np.int64)
    row_price = np.zeros(n_rows, np.int64)
    column_price = np.zeros(n_columns, np.int64)
    distance = np.full(n_columns, _FAR, np.int64)
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
