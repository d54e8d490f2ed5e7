"""Arithmetic modulo a prime p below 2⁴⁰, on int64 numbers from 0 to p - 1.

A product is reduced without a division: q = ⌊a b / p⌋ comes from double precision and
is off by one at most, because q < 2⁴⁰ and three roundings move it by less than 1; then
a b - q p, computed modulo 2⁶⁴, is the remainder give or take p.

A sum of products is reduced once: both factors are cut into halves of 20 bits, and the
three kinds of partial products are added up, 2²² of them before 64 bits overflow.

The slow form of every kernel, in Python's whole numbers, is beside its tests.
"""

from __future__ import annotations

import numpy as np
from numba import njit

_HALF = 20  # bits of half a number
_LOW = (1 << _HALF) - 1


@njit(inline="always")
def _mul(a, b, p, inverse):  # type: ignore[no-untyped-def]
    """The product modulo p; `inverse` is 1 / p in double precision."""
    q = np.int64(np.float64(a) * np.float64(b) * inverse)
    r = a * b - q * p
    r += p & (r >> 63)
    r -= p
    return r + (p & (r >> 63))


@njit(inline="always")
def _add(a, b, p):  # type: ignore[no-untyped-def]
    r = a + b - p
    return r + (p & (r >> 63))


@njit(inline="always")
def _subtract(a, b, p):  # type: ignore[no-untyped-def]
    r = a - b
    return r + (p & (r >> 63))


@njit(inline="always")
def _joined(low, middle, high, p, inverse):  # type: ignore[no-untyped-def]
    """The sums of the three kinds of partial products as one number modulo p."""
    half = np.int64(1 << _HALF)
    upper = _mul(high % p, half, p, inverse) + middle % p
    return (_mul(upper % p, half, p, inverse) + low % p) % p


@njit(cache=True, nogil=True)
def power(a, exponent, p):  # type: ignore[no-untyped-def]
    """A number to a power from 0 on; p - 2 gives its inverse."""
    inverse, result = 1.0 / p, np.int64(1)
    while exponent:
        if exponent & 1:
            result = _mul(result, a, p, inverse)
        a = _mul(a, a, p, inverse)
        exponent >>= 1
    return result


# --- Polynomials ----------------------------------------------------------------------


@njit(cache=True, nogil=True)
def transform(x, root, p):  # type: ignore[no-untyped-def]
    """In place, along the rows: values at the powers of `root` from coefficients.

    `root` has the order len(x), a power of two. Columns lie side by side in memory, so
    the innermost loop is one of vectors.
    """
    n, columns = x.shape
    inverse = 1.0 / p
    j = 0
    for i in range(1, n):  # bits of the row's number backwards
        bit = n >> 1
        while j & bit:
            j ^= bit
            bit >>= 1
        j |= bit
        if i < j:
            for c in range(columns):
                x[i, c], x[j, c] = x[j, c], x[i, c]
    size = 2
    while size <= n:
        half = size >> 1
        step = power(root, n // size, p)
        twiddle = np.int64(1)
        for k in range(half):
            for start in range(k, n, size):
                for c in range(columns):
                    a, b = x[start, c], _mul(x[start + half, c], twiddle, p, inverse)
                    x[start, c] = _add(a, b, p)
                    x[start + half, c] = _subtract(a, b, p)
            twiddle = _mul(twiddle, step, p, inverse)
        size <<= 1


@njit(cache=True, nogil=True)
def _scale(x, first, ratio, p):  # type: ignore[no-untyped-def]
    """Row k times first · ratio^k, in place."""
    inverse = 1.0 / p
    for k in range(x.shape[0]):
        for c in range(x.shape[1]):
            x[k, c] = _mul(x[k, c], first, p, inverse)
        first = _mul(first, ratio, p, inverse)


@njit(cache=True, nogil=True)
def gadget_polynomial(wires, is_square, root, p):  # type: ignore[no-untyped-def]
    """The 2P - 1 coefficients of Σ f_j², or of f_0 f_1 + f_2 f_3 + …

    f_j is the polynomial of degree below P with the values wires[:, j] at the powers of
    root², and `root` has the order 2P. At the odd powers of `root` its values come from
    two transforms.
    """
    points, arity = wires.shape
    inverse = 1.0 / p
    values = np.zeros((2 * points, 1), np.int64)
    between = wires.copy()
    square = _mul(root, root, p, inverse)
    transform(between, power(square, p - 2, p), p)
    _scale(between, power(points, p - 2, p), root, p)
    transform(between, square, p)
    for odd in range(2):
        some = between if odd else wires
        for k in range(points):
            total = np.int64(0)
            if is_square:
                for c in range(arity):
                    total += _mul(some[k, c], some[k, c], p, inverse)
            else:
                for c in range(0, arity, 2):
                    total += _mul(some[k, c], some[k, c + 1], p, inverse)
            values[2 * k + odd, 0] = total % p
    transform(values, power(root, p - 2, p), p)
    _scale(values, power(2 * points, p - 2, p), np.int64(1), p)
    return values[: 2 * points - 1, 0].copy()


@njit(cache=True, nogil=True)
def values_at_roots(coefficients, points, root, p):  # type: ignore[no-untyped-def]
    """The values of a polynomial at all powers of `root`, whose order is `points`."""
    folded = np.zeros((points, 1), np.int64)
    for i in range(len(coefficients)):
        k = i % points
        folded[k, 0] = _add(folded[k, 0], coefficients[i], p)
    transform(folded, root, p)
    return folded[:, 0].copy()


@njit(cache=True, nogil=True)
def value_at(coefficients, t, p):  # type: ignore[no-untyped-def]
    """The value of a polynomial at t."""
    inverse, value = 1.0 / p, np.int64(0)
    for i in range(len(coefficients) - 1, -1, -1):
        value = _add(_mul(value, t, p, inverse), coefficients[i], p)
    return value


@njit(cache=True, nogil=True)
def wires_at(wires, t, root, p):  # type: ignore[no-untyped-def]
    """f_j(t) for each column, by Lagrange: root^k (t^P - 1) / (P (t - root^k)) at k.

    t must be no power of `root`.
    """
    points, arity = wires.shape
    inverse = 1.0 / p
    base = _subtract(power(t, points, p), 1, p)
    base = _mul(base, power(points, p - 2, p), p, inverse)
    low, middle = np.zeros(arity, np.int64), np.zeros(arity, np.int64)
    high = np.zeros(arity, np.int64)
    place = np.int64(1)
    for k in range(points):
        weight = _mul(base, place, p, inverse)
        weight = _mul(weight, power(_subtract(t, place, p), p - 2, p), p, inverse)
        w0, w1 = weight & _LOW, weight >> _HALF
        for c in range(arity):
            x0, x1 = wires[k, c] & _LOW, wires[k, c] >> _HALF
            low[c] += x0 * w0
            middle[c] += x0 * w1 + x1 * w0
            high[c] += x1 * w1
        place = _mul(place, root, p, inverse)
    for c in range(arity):
        low[c] = _joined(low[c], middle[c], high[c], p, inverse)
    return low


# --- Forms ----------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def ternary_products(x, codes, p):  # type: ignore[no-untyped-def]
    """Dot products with vectors of -1, 0, 0, 1: two bits each, bit + bit' - 1.

    A row of `codes` is one vector, four numbers a byte, the lowest bits first.
    """
    n = len(x)
    whole = n // 4
    total = np.int64(0)
    for i in range(n):
        total += x[i]
    out = np.zeros(len(codes), np.int64)
    for row in range(len(codes)):
        s = np.int64(0)
        for j in range(whole):
            b = np.int64(codes[row, j])
            b = (b & 0x55) + (b >> 1 & 0x55)  # both bits of each number, added up
            s += x[4 * j] * (b & 3) + x[4 * j + 1] * (b >> 2 & 3)
            s += x[4 * j + 2] * (b >> 4 & 3) + x[4 * j + 3] * (b >> 6)
        for i in range(4 * whole, n):
            b = np.int64(codes[row, whole]) >> (2 * (i - 4 * whole))
            s += x[i] * ((b & 1) + (b >> 1 & 1))
        out[row] = (s - total) % p
    return out


@njit(cache=True, nogil=True)
def dot(x, y, p):  # type: ignore[no-untyped-def]
    """Σ x_i y_i modulo p."""
    low, middle, high = np.int64(0), np.int64(0), np.int64(0)
    for i in range(len(x)):
        x0, x1, y0, y1 = x[i] & _LOW, x[i] >> _HALF, y[i] & _LOW, y[i] >> _HALF
        low += x0 * y0
        middle += x0 * y1 + x1 * y0
        high += x1 * y1
    return _joined(low, middle, high, p, 1.0 / p)


@njit(cache=True, nogil=True)
def quadratic_forms(upper, weights, p):  # type: ignore[no-untyped-def]
    """Σ_{i ≤ j} (2 - [i = j]) w_i w_j X_ij for each row of weights.

    X lies row by row from the diagonal on. Every row of X is read once for all forms.
    """
    forms, n = weights.shape
    inverse = 1.0 / p
    out = np.zeros(forms, np.int64)
    first = 0
    for i in range(n):
        row = upper[first : first + n - i]
        for form in range(forms):
            mine = weights[form, i:]
            rest = dot(row[1:], mine[1:], p)
            s = (2 * rest + _mul(row[0], mine[0], p, inverse)) % p
            out[form] = _add(out[form], _mul(s, mine[0], p, inverse), p)
        first += n - i
    return out


@njit(cache=True, nogil=True)
def bilinear_forms(matrix, left, right, p):  # type: ignore[no-untyped-def]
    """Σ l_i r_j X_ij for each row of `left` and of `right`; X lies row by row."""
    forms, rows = left.shape
    columns = right.shape[1]
    inverse = 1.0 / p
    out = np.zeros(forms, np.int64)
    for i in range(rows):
        row = matrix[i * columns : (i + 1) * columns]
        for form in range(forms):
            s = _mul(dot(row, right[form], p), left[form, i], p, inverse)
            out[form] = _add(out[form], s, p)
    return out


@njit(cache=True, nogil=True)
def upper_products(z, out, p):  # type: ignore[no-untyped-def]
    """z_i z_j for i ≤ j, row by row, modulo p; |z_i| is below 2³¹."""
    k, longest = 0, np.int64(0)
    for i in range(len(z)):
        longest = max(longest, abs(z[i]))
    is_small = longest * longest < p
    for i in range(len(z)):
        row, rest, first = out[k : k + len(z) - i], z[i:], z[i]
        for j in range(len(row)):  # by number, else it does not vectorize
            row[j] = first * rest[j]
        k += len(row)
    for k in range(len(out)):
        r = out[k] if is_small else out[k] % p
        out[k] = r + (p & (r >> 63))


@njit(cache=True, nogil=True)
def binary_values(bits, p):  # type: ignore[no-untyped-def]
    """Σ 2^i b_i of each row modulo p, for bits or shares of them."""
    rows, n = bits.shape
    out = np.zeros(rows, np.int64)
    for row in range(rows):
        value = np.int64(0)
        for i in range(n - 1, -1, -1):
            value = _add(_add(value, value, p), bits[row, i], p)
        out[row] = value
    return out


@njit(cache=True, nogil=True)
def root_pairs(x, ratio, root, out, p):  # type: ignore[no-untyped-def]
    """ratio^i x_i and x_i - root, pair by pair: the products are zero for 0 and root.

    With root = 1 they say that all x_i are bits.
    """
    inverse, weight = 1.0 / p, np.int64(1)
    for i in range(len(x)):
        out[2 * i] = _mul(weight, x[i], p, inverse)
        out[2 * i + 1] = _subtract(x[i], root, p)
        weight = _mul(weight, ratio, p, inverse)


@njit(cache=True, nogil=True)
def claim_pairs(differences, marks, ratio, out, p):  # type: ignore[no-untyped-def]
    """ratio^i (difference i) and mark i, pair by pair."""
    inverse, weight = 1.0 / p, np.int64(1)
    for i in range(len(marks)):
        out[2 * i] = _mul(weight, differences[i], p, inverse)
        out[2 * i + 1] = marks[i]
        weight = _mul(weight, ratio, p, inverse)


# --- Bytes ----------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def unpack(raw, size, mask, out, p):  # type: ignore[no-untyped-def]
    """The numbers below p among those of `size` bytes in `raw`, and how many they are.

    Lowest byte first; bits outside of `mask` are left out. `out` has room for all.
    """
    n = len(raw) // size
    count = 0
    if size == 5:  # by number: five bytes are two loads
        for i in range(n):
            k = 5 * i
            value = (
                np.int64(raw[k])
                | np.int64(raw[k + 1]) << 8
                | np.int64(raw[k + 2]) << 16
                | np.int64(raw[k + 3]) << 24
                | np.int64(raw[k + 4]) << 32
            ) & mask
            out[count] = value
            count += value < p
    else:
        for i in range(n):
            value = np.int64(0)
            for k in range(size * i + size - 1, size * i - 1, -1):
                value = value << 8 | np.int64(raw[k])
            out[count] = value & mask
            count += (value & mask) < p
    return count


@njit(cache=True, nogil=True)
def pack(numbers, size, out):  # type: ignore[no-untyped-def]
    """Write each number in `size` bytes, the lowest first."""
    if size == 5:
        for i in range(len(numbers)):
            k, value = 5 * i, numbers[i]
            out[k] = value & 255
            out[k + 1] = value >> 8 & 255
            out[k + 2] = value >> 16 & 255
            out[k + 3] = value >> 24 & 255
            out[k + 4] = value >> 32 & 255
    else:
        for i in range(len(numbers)):
            for k in range(size):
                out[size * i + k] = numbers[i] >> (8 * k) & 255


@njit(cache=True, nogil=True)
def add_modulo(x, y, out, p):  # type: ignore[no-untyped-def]
    """Sums x + y modulo p, into `out`, which may be one of them."""
    for i in range(len(x)):
        out[i] = _add(x[i], y[i], p)


@njit(cache=True, nogil=True)
def subtract_modulo(x, y, out, p):  # type: ignore[no-untyped-def]
    """Differences x - y modulo p, into `out`, which may be one of them."""
    for i in range(len(x)):
        out[i] = _subtract(x[i], y[i], p)
