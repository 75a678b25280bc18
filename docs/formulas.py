"""Formulas: from the plain text of docstrings to MathML, which browsers typeset without scripts or fonts.

The notation is what reads well in a terminal:

    a / b                    a fraction; products bind tighter: 2 H / (A + R)
    N_act, H_(g-1), x^2      subscripts and superscripts
    sum over g of X          what an operator runs over: sum, mean, max, min, argmax
    beta, theta, >=, in      Greek letters and signs by their names
    |Q|                      the size of a set

Names of several letters are upright, names of one letter slanted, as in print.
"""

from __future__ import annotations

import re
from html import escape

_LETTERS = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho - sigma tau upsilon phi "
    "chi psi omega"
)
_GREEK = {name: chr(0x3B1 + place) for place, name in enumerate(_LETTERS.split())} | {"Omega": "Ω"}
_SIGNS = {"-": "\N{MINUS SIGN}", ">=": "≥", "<=": "≤", "!=": "≠", "in": "∈", "and": "∩", "...": "…", "'": "\N{PRIME}"}
_OVER = {"sum": "∑", "mean": "mean", "max": "max", "min": "min", "argmax": "argmax"}
_WORDS = {"where", "with", "if", "each", "at", "the", "over", "rising", "for", "targets", "others"}
_TOKEN = re.compile(r"\s*(\.\.\.|[<>!]=|\d+(?:\.\d+)?|\.\d+|[A-Za-z][A-Za-z0-9]*(?:_\w+)*|\S)")
_TIGHT = re.compile(r"[\w.('|∑]")
"""How a factor begins."""


def mathml(formula: str) -> str:
    """The formula as a MathML element.

    Examples
    --------
    >>> mathml("H / R")
    '<math display="block"><mfrac><mi>H</mi><mi>R</mi></mfrac></math>'
    """
    return f'<math display="block">{_Parser(_TOKEN.findall(formula)).until()}</math>'


class _Parser:
    """Recursive descent over the tokens of one formula; every method returns MathML."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens[::-1]

    def _next(self) -> str:
        return self._tokens[-1] if self._tokens else ""

    def until(self, *ends: str) -> str:
        """Everything up to one of `ends`, which is passed over."""
        parts = []
        while self._tokens and self._next() not in ends:
            parts.append(self._product(ends) if self._begins_a_factor() else _sign(self._tokens.pop()))
        if self._tokens:
            self._tokens.pop()
        return "".join(parts)

    def _begins_a_factor(self) -> bool:
        token = self._next()
        return bool(token) and token not in _SIGNS and token not in _WORDS and _TIGHT.match(token) is not None

    def _product(self, ends: tuple[str, ...]) -> str:
        """Factors side by side, over others where a slash follows."""
        found = self._factors(ends)
        while self._next() == "/":
            self._tokens.pop()
            found = f"<mfrac>{_bare(found)}{_bare(self._factors(ends))}</mfrac>"
        return found

    def _factors(self, ends: tuple[str, ...]) -> str:
        factors = []
        while self._next() not in ends and self._begins_a_factor():
            called = self._next() == "(" and factors and factors[-1].startswith(("<mi", "<msub"))
            if factors and not called:
                factors.append('<mspace width="0.2em"/>')
            factors.append(self._factor(ends))
        return factors[0] if len(factors) == 1 else f"<mrow>{''.join(factors)}</mrow>"

    def _factor(self, ends: tuple[str, ...] = ()) -> str:
        token = self._tokens.pop()
        if token in _OVER and self._next() == "over":
            self._tokens.pop()
            operator = f'<munder><mo movablelimits="false">{_OVER[token]}</mo><mrow>{self.until("of")}</mrow></munder>'
            return f"<mrow>{operator}{self._product(ends)}</mrow>"
        if token in "(|":
            close = ")" if token == "(" else "|"
            inside = self.until(close)
            fence = "<mo>" if "<mfrac>" in inside else '<mo stretchy="false">'
            found = f"<mrow>{fence}{token}</mo>{inside}{fence}{close}</mo></mrow>"
        elif token[0].isdigit() or token[0] == ".":
            found = f"<mn>{token}</mn>"
        else:
            name, _, below = token.partition("_")
            found = _name(name)
            if below:
                found = f"<msub>{found}<mrow>{_lower(below)}</mrow></msub>"
        while self._next() in ("_", "^", "'", "*"):
            mark = self._tokens.pop()
            raised = f"<mo>{_SIGNS.get(mark, mark)}</mo>" if mark in "'*" else _bare(self._factor())
            found = f"<{'msub' if mark == '_' else 'msup'}>{found}{raised}</{'msub' if mark == '_' else 'msup'}>"
        return found


def _bare(found: str) -> str:
    """Without the parentheses around it, which a fraction or an index replaces."""
    whole = re.fullmatch(r"<mrow><mo[^>]*>\(</mo>(.*)<mo[^>]*>\)</mo></mrow>", found)
    return f"<mrow>{whole[1]}</mrow>" if whole else found


def _name(name: str) -> str:
    return f"<mi>{_GREEK.get(name, name)}</mi>"


def _lower(name: str) -> str:
    """A subscript: a name, or several joined by underscores."""
    return "<mspace width='0.15em'/>".join(
        f"<mn>{part}</mn>" if part.isdigit() else _name(part) for part in name.split("_")
    )


def _sign(token: str) -> str:
    if token in _WORDS:
        return f"<mspace width='0.3em'/><mtext>{token}</mtext><mspace width='0.3em'/>"
    return f"<mo>{escape(_SIGNS.get(token, token))}</mo>"
