"""Small systems of linear equations, without a library of matrices: the server's own process loads
none."""

from collections.abc import Sequence

_TINY = 1e-9
_FLOOR = 1e-6
"""Of an answer's largest part: nothing in it is less than this."""


def solve_positive(rows: Sequence[Sequence[float]], right: Sequence[float]) -> tuple[float, ...]:
    """Solve a symmetric positive system for an answer without negative parts: what would be
    negative is left out, the worst first, and the rest solved again. Never fails: a part about
    which the system says nothing is 0."""
    size = len(right)
    kept = list(range(size))
    while kept:
        answer = _solve([[rows[i][j] for j in kept] + [right[i]] for i in kept])
        worst = min(range(len(kept)), key=answer.__getitem__)
        if answer[worst] >= 0.0:
            whole = [0.0] * size
            for place, value in zip(kept, answer, strict=True):
                whole[place] = value
            return tuple(whole)
        del kept[worst]
    return (0.0,) * size


def _solve(system: list[list[float]]) -> list[float]:
    """Gaussian elimination; a positive system needs no pivoting."""
    size = len(system)
    for i in range(size):
        row = system[i]
        pivot = row[i]
        if pivot <= _TINY * abs(row[size]) or pivot <= 0.0:
            row[i] = 1.0
            row[size] = 0.0
            continue
        for j in range(i + 1, size):
            lower = system[j]
            factor = lower[i] / pivot
            if factor:
                for k in range(i, size + 1):
                    lower[k] -= factor * row[k]
    answer = [0.0] * size
    for i in range(size - 1, -1, -1):
        row = system[i]
        rest = row[size]
        for k in range(i + 1, size):
            rest -= row[k] * answer[k]
        answer[i] = rest / row[i]
    return answer
