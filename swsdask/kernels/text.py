"""Columns of text: decimal numbers, read exactly, and dictionaries of byte strings.

Value i of a column is text[offsets[i]:offsets[i + 1]], as Arrow holds it.

A number is `[+-] digits [. digits] [e [+-] digits]` with a digit before the exponent. Its digits form an integer
mantissa m; its point and exponent determine a power of ten e. The number is m * 10**e.

A score is the float64 nearest to the text, ties to even. It is bit for bit the result of Python's `float`:
- m <= 2**53 and |e| <= 22: m and 10**|e| are exact as floats, so one multiplication or division rounds once
  (W. D. Clinger, "How to read floating point numbers accurately", PLDI 1990).
- m < 2**64 and -22 <= e <= 0: m is divided by 10**-e in integers, to 54 bits or more. The remainder decides the
  rounding.
- The caller reads all other numbers.

A time is m * 10**(e + 4) ticks of 0.1 ms, rounded half to even.

Text is read in words of eight bytes; the first byte is the lowest. One operation handles all eight bytes. The branches
of a loop over bytes would be mispredicted where the lengths of values change from row to row. Because whole words are
read, `PADDING` bytes must follow every text.

A dictionary assigns codes to byte strings in order of first appearance. It is an open-addressing hash table over one
arena of bytes. Its columns are `slots` int32 [a power of two, at least twice the entries], -1 where empty; `hashes`
uint64 and `ends` int64 [entries]; and `arena` uint8, where entry k ends at `ends[k]` and begins where entry k - 1 ends.
`PADDING` bytes follow the last entry.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import boolean, float64, int32, int64, types, uint8, uint64, void
from numba.core.extending import intrinsic
from numpy.typing import NDArray

from swsdask.kernels.compilation import NOTHING_NEW, column, inlined, kernel, part

MAX_DIGITS = 19
"""The number of digits, after leading zeros, that a uint64 mantissa always holds."""

TEXT = column(uint8)
"""The type of text: bytes that a kernel only reads."""

TAB, NEWLINE, RETURN, BLANK = ord("\t"), ord("\n"), ord("\r"), ord(" ")
QUOTE, APOSTROPHE, SLASH, LESS, EQUALS, GREATER = ord('"'), ord("'"), ord("/"), ord("<"), ord("="), ord(">")
PLUS, MINUS, POINT, ZERO, NINE, UPPER_A = ord("+"), ord("-"), ord("."), ord("0"), ord("9"), ord("A")
"""Bytes of text."""

YES, NO = np.frombuffer(b"YES", np.uint8), np.frombuffer(b"NO", np.uint8)
"""Decisions."""

PADDING = 8
"""The number of bytes after a text that a kernel may read. Their values do not matter."""

_EXPONENTS = np.frombuffer(b"eE", np.uint8)
_POWERS = np.array([10**n for n in range(20)], np.uint64)
_FLOAT_POWERS = np.array([float(10**n) for n in range(23)], np.float64)
_MAX_TICKS = np.uint64(2**31 - 1)
_NONE = np.uint64(0)
_ONE = np.uint64(1)
_TWO = np.uint64(2)
_FIVE = np.uint64(5)
_EIGHT = np.uint64(8)
_NINE = np.uint64(9)
_TEN = np.uint64(10)
_SIXTEEN = np.uint64(16)
_HALF = np.uint64(32)
_BITS_53 = np.uint64(2**53)
_BITS_54 = np.uint64(2**54)
_LOWEST_BITS = np.uint64(0x0101010101010101)
_HIGHEST_BITS = np.uint64(0x8080808080808080)
_ALL_ZEROS = np.uint64(0x3030303030303030)
_BEYOND_NINE = np.uint64(0x7676767676767676)
_PAIRS = np.uint64(0x000000FF000000FF)
_PAIR_SCALES = np.array([0x000F424000000064, 0x0000271000000001], np.uint64)


@intrinsic
def _load(typing: object, text: Any, at: Any) -> Any:  # noqa: ARG001
    """Load the eight bytes of an array of bytes from `at` on as one integer."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, given[0]).data
        word = context.get_value_type(signature.return_type)
        return builder.load(builder.bitcast(builder.gep(data, [given[1]]), word.as_pointer()), align=1)

    return types.uint64(text, types.int64), generate


@intrinsic
def _trailing_zeros(typing: object, word: Any) -> Any:  # noqa: ARG001
    """Count the trailing zero bits of a nonzero integer."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:  # noqa: ARG001
        return builder.cttz(given[0], context.get_constant(types.boolean, True))

    return types.int64(types.uint64), generate


@inlined(uint64(TEXT, int64), **NOTHING_NEW)
def word_at(text: NDArray[np.uint8], at: int) -> np.uint64:
    """Return the eight bytes of `text` from `at` on as one integer."""
    _ = text[at + PADDING - 1]  # compiled only where every index is checked; `_load` checks none
    word: np.uint64 = _load(text, at)  # type: ignore[call-arg]
    return word


@inlined(uint64(int64), **NOTHING_NEW)
def eight_times(byte: int) -> np.uint64:
    """Return a word of eight copies of a byte."""
    return np.uint64(byte) * _LOWEST_BITS


@inlined()
def marked(word: np.uint64, eight: np.uint64) -> np.uint64:
    """Mark the bytes in which two words are equal, for `first_mark`. Marks after the first one may be wrong."""
    differing = word ^ eight
    return (differing - _LOWEST_BITS) & ~differing & _HIGHEST_BITS


@inlined()
def marked_below(word: np.uint64, eight: np.uint64) -> np.uint64:
    """Do as `marked` for the bytes that are less than those of another word, which are at most 128."""
    return (word - eight) & ~word & _HIGHEST_BITS


@inlined()
def first_mark(marks: np.uint64) -> int:
    """Return the place of the first marked byte. There must be one."""
    bits: int = _trailing_zeros(marks)  # type: ignore[call-arg]
    return bits >> 3


@inlined(uint64(uint64, int64), **NOTHING_NEW)
def first_bytes(word: np.uint64, size: int) -> np.uint64:
    """Return a word with the other bytes than the first `size`, fewer than eight, set to 0."""
    return word & ((_ONE << np.uint64(8 * size)) - _ONE)


@inlined()
def are_same(one: NDArray[np.uint8], at: int, other: NDArray[np.uint8], first: int, size: int) -> bool:
    """Return whether `size` bytes of one text from `at` on equal those of another text from `first` on."""
    while size >= PADDING:
        if word_at(one, at) != word_at(other, first):
            return False
        at += PADDING
        first += PADDING
        size -= PADDING
    return bool(first_bytes(word_at(one, at) ^ word_at(other, first), size) == _NONE)


@inlined()
def _scan_digits(text: NDArray[np.uint8], at: int, mantissa: np.uint64) -> tuple[int, np.uint64]:
    """Append the digits from `at` on to a mantissa; return the end of the digits and the new mantissa."""
    while True:
        digits = word_at(text, at) ^ _ALL_ZEROS
        others = ((digits + _BEYOND_NINE) | digits) & _HIGHEST_BITS
        size = first_mark(others) if others != _NONE else PADDING
        if size == 0:
            return at, mantissa
        # Zeros are shifted in before the digits. Then digits are combined into pairs, and the four pairs into a number.
        digits <<= np.uint64(8 * (PADDING - size))
        digits = digits * _TEN + (digits >> _EIGHT)
        high = (digits & _PAIRS) * _PAIR_SCALES[0]
        low = ((digits >> _SIXTEEN) & _PAIRS) * _PAIR_SCALES[1]
        mantissa = mantissa * _POWERS[size] + ((high + low) >> _HALF)
        at += size
        if size < PADDING:
            return at, mantissa


@part()
def _significant(text: NDArray[np.uint8], at: int, end: int) -> int:
    """Count the digits of text[at:end] after leading zeros."""
    digits = 0
    for place in range(at, end):
        if text[place] != POINT and (digits > 0 or text[place] != ZERO):
            digits += 1
    return digits


@inlined()
def scan_number(text: NDArray[np.uint8], at: int) -> tuple[int, bool, np.uint64, int, int]:
    """Read the number at byte `at` of `text` (uint8). A byte that cannot belong to a number must follow it.

    Returns its end (-1 if no number begins there), whether it is negative, its mantissa (uint64; valid only for
    `digits <= MAX_DIGITS`), its exponent, and its number of digits. The latter is 0 if the number is 0. It includes
    leading zeros only if there are at most `MAX_DIGITS` digits with them.
    """
    negative = text[at] == MINUS
    at += 1 if negative or text[at] == PLUS else 0
    begin = at
    at, mantissa = _scan_digits(text, at, _NONE)
    digits = at - begin
    exponent = 0
    if text[at] == POINT:
        first = at + 1
        at, mantissa = _scan_digits(text, first, mantissa)
        exponent = first - at
        digits += at - first
    if digits == 0:
        return -1, False, _NONE, 0, 0
    if digits > MAX_DIGITS:
        digits = _significant(text, begin, at)
    elif mantissa == _NONE:
        digits = 0
    if text[at] == _EXPONENTS[0] or text[at] == _EXPONENTS[1]:
        at += 1
        down = text[at] == MINUS
        if down or text[at] == PLUS:
            at += 1
        first = at
        power = 0
        while text[at] >= ZERO and text[at] <= NINE:
            power = min(power * 10 + text[at] - ZERO, 1_000_000)
            at += 1
        if at == first:
            return -1, False, _NONE, 0, 0
        exponent += -power if down else power
    return at, negative, mantissa, exponent, digits


@part()
def _divide(mantissa: np.uint64, power: int) -> float:
    """Return the float nearest to mantissa / 10**power, ties to even; 2**53 < mantissa, 0 <= power <= 22."""
    # 10**power = 5**power * 2**power, and 5**22 < 2**52 leaves room to shift a remainder by nine bits.
    five = _ONE
    for _ in range(power):
        five *= _FIVE
    quotient = mantissa // five
    rest = mantissa - quotient * five
    shift = -power
    while quotient < _BITS_54:
        rest <<= _NINE
        more = rest // five
        rest -= more * five
        quotient = (quotient << _NINE) | more
        shift -= 9
    beyond = rest > _NONE
    while quotient >= _BITS_54:
        beyond = beyond or (quotient & _ONE) > _NONE
        quotient >>= _ONE
        shift += 1
    up = (quotient & _ONE) > _NONE and (beyond or (quotient & _TWO) > _NONE)
    quotient >>= _ONE
    if up:
        quotient += _ONE
    return math.ldexp(float(quotient), shift + 1)


@inlined()
def nearest_float(mantissa: np.uint64, exponent: int, digits: int) -> tuple[bool, float]:
    """Return whether mantissa * 10**exponent has a form that is read here, and if so the float64 nearest to it."""
    if digits == 0:
        return True, 0.0
    if digits > MAX_DIGITS or exponent > 22 or exponent < -22:
        return False, 0.0
    if mantissa <= _BITS_53:
        if exponent < 0:
            return True, float(mantissa) / _FLOAT_POWERS[-exponent]
        return True, float(mantissa) * _FLOAT_POWERS[exponent]
    if exponent <= 0:
        return True, _divide(mantissa, -exponent)
    return False, 0.0


@inlined()
def nearest_tick(mantissa: np.uint64, exponent: int, digits: int) -> tuple[np.int64, bool]:
    """Return the ticks of mantissa * 10**exponent seconds, and whether they are rounded.

    The ticks are -1 if they exceed int32, or if the time has too many digits to be read here.
    """
    if digits == 0:
        return np.int64(0), False
    power = exponent + 4
    if digits > MAX_DIGITS or power > 9 or power < -19:
        return np.int64(-1), False
    if power >= 0:
        whole = mantissa * _POWERS[power]
        if mantissa > _MAX_TICKS or whole > _MAX_TICKS:
            return np.int64(-1), False
        return np.int64(whole), False
    unit = _POWERS[-power]
    whole = mantissa // unit
    rest = mantissa - whole * unit
    missing = unit - rest
    if rest > missing or (rest == missing and (whole & _ONE) > _NONE):
        whole += _ONE
    if whole > _MAX_TICKS:
        return np.int64(-1), False
    return np.int64(whole), bool(rest > _NONE)


_LONGEST = 55


@part()
def _copy(text: NDArray[np.uint8], begin: int, end: int, value: NDArray[np.uint8]) -> int:
    """Copy a value, and add a byte of 0 after it; return the length of the value, or -1 if it is too long."""
    size = end - begin
    if size > _LONGEST:
        return -1
    for place in range(size):
        value[place] = text[begin + place]
    value[size] = 0
    return size


@kernel(void(TEXT, column(int32), float64[::1], boolean[::1]))
def read_scores(
    text: NDArray[np.uint8], offsets: NDArray[np.int32], scores: NDArray[np.float64], unread: NDArray[np.bool_]
) -> None:
    """Write the float64 nearest to each value into `scores`; `unread` marks values left to the caller."""
    value = np.zeros(_LONGEST + 1 + PADDING, np.uint8)
    for row in range(len(scores)):
        size = _copy(text, offsets[row], offsets[row + 1], value)
        end, negative, mantissa, exponent, digits = scan_number(value, 0)
        read, score = nearest_float(mantissa, exponent, digits)
        scores[row] = -score if negative else score
        unread[row] = size < 1 or end != size or not read


@kernel(void(TEXT, column(int32), int64[::1], boolean[::1], boolean[::1]))
def read_ticks(
    text: NDArray[np.uint8],
    offsets: NDArray[np.int32],
    ticks: NDArray[np.int64],
    rounded: NDArray[np.bool_],
    unread: NDArray[np.bool_],
) -> None:
    """Write the ticks of times in seconds, and whether they are `rounded`; `unread` marks times left to the caller."""
    value = np.zeros(_LONGEST + 1 + PADDING, np.uint8)
    for row in range(len(ticks)):
        size = _copy(text, offsets[row], offsets[row + 1], value)
        end, negative, mantissa, exponent, digits = scan_number(value, 0)
        ticks[row], rounded[row] = nearest_tick(mantissa, exponent, digits)
        unread[row] = size < 1 or end != size or ticks[row] < 0 or (negative and digits > 0)


NO_ROOM = -1
"""The value that `encode` returns if an entry is new and there is no room for it."""

_HASH_FACTOR = np.uint64(0x9E3779B97F4A7C15)
"""2**64 divided by the golden ratio, as an odd integer."""

DICTIONARY = (int32[::1], uint64[::1], int64[::1], uint8[::1])
"""The types of `slots`, `hashes`, `ends`, `arena`."""


@inlined()
def mixed(key: np.uint64, word: np.uint64) -> np.uint64:
    """Extend the hash of a text by a word. The hash of no text is 0. The last word has fewer than eight bytes."""
    key = (key ^ word) * _HASH_FACTOR
    return key ^ (key >> _HALF)


@inlined()
def _first_slot(key: np.uint64, mask: int) -> np.int64:
    return np.int64((key * _HASH_FACTOR) >> _HALF) & mask


@inlined()
def encode(
    text: NDArray[np.uint8],
    begin: int,
    end: int,
    key: np.uint64,
    entries: int,
    slots: NDArray[np.int32],
    hashes: NDArray[np.uint64],
    ends: NDArray[np.int64],
    arena: NDArray[np.uint8],
) -> int:
    """Return the code of text[begin:end], whose hash is `key`, in a dictionary of `entries` entries.

    A new text is added with the code `entries`. If there is no room for it, nothing changes, and the result is
    `NO_ROOM`.
    """
    size = end - begin
    mask = len(slots) - 1
    slot = _first_slot(key, mask)
    while slots[slot] >= 0:
        code: int = slots[slot]
        first = ends[code - 1] if code > 0 else 0
        if hashes[code] == key and ends[code] - first == size and are_same(text, begin, arena, first, size):
            return code
        slot = (slot + 1) & mask
    first = ends[entries - 1] if entries > 0 else 0
    if entries == len(hashes) or first + size + PADDING > len(arena):
        return NO_ROOM
    for offset in range(size):
        arena[first + offset] = text[begin + offset]
    slots[slot] = entries
    hashes[entries] = key
    ends[entries] = first + size
    return entries


@kernel(int64(TEXT, int64, *DICTIONARY))
def encode_text(
    text: NDArray[np.uint8],
    entries: int,
    slots: NDArray[np.int32],
    hashes: NDArray[np.uint64],
    ends: NDArray[np.int64],
    arena: NDArray[np.uint8],
) -> int:
    """Do as `encode` for a whole text, which `PADDING` bytes follow."""
    size = len(text) - PADDING
    key = _NONE
    at = 0
    while size - at >= PADDING:
        key = mixed(key, word_at(text, at))
        at += PADDING
    key = mixed(key, first_bytes(word_at(text, at), size - at))
    return encode(text, 0, size, key, entries, slots, hashes, ends, arena)


@kernel(void(int64, uint64[::1], int32[::1]))
def fill_slots(entries: int, hashes: NDArray[np.uint64], slots: NDArray[np.int32]) -> None:
    """Clear `slots` and put the first `entries` entries into them."""
    slots[:] = -1
    mask = len(slots) - 1
    for code in range(entries):
        slot = _first_slot(hashes[code], mask)
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = code


_DIGIT, _LETTER = 4, 14
_CODES = 15
_CHARACTERS = 16
"""The number of characters, with `_CODES` values each, that fit into an integer below the bits of inf."""


@part()
def _code(character: int) -> int:
    """Return the rank of a character in the order +, -, the point, digits, letters; it is at least 1."""
    if character < ZERO:
        return 1 if character == PLUS else character - PLUS
    return min(_DIGIT + character - ZERO, _LETTER)


@kernel(float64[::1](TEXT, column(int32)))
def text_order(text: NDArray[np.uint8], offsets: NDArray[np.int32]) -> NDArray[np.float64]:
    """Return numbers that sort as the texts of decimal numbers do, character by character; float64 [n].

    The end of a text comes first, then +, -, the point, digits, letters. Only the first 16 characters count. The
    results are the bits of integers taken as floats: nonnegative floats sort as their bits.
    """
    order = np.empty(len(offsets) - 1, np.float64)
    for number in range(len(order)):
        begin, end = offsets[number], offsets[number + 1]
        bits = 0
        for at in range(begin, begin + _CHARACTERS):
            bits = bits * _CODES + (_code(int(text[at])) if at < end else 0)
        order[number] = np.int64(bits).view(np.float64)
    return order
