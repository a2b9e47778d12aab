"""Prints the window starts of `order_is_fixed_by_the_specification` (tests/suite/data.rs): Philox4x32-10 as in
shaders/README.md, "Noise".

    python make_data_order.py
"""
M64 = (1 << 64) - 1
M32 = (1 << 32) - 1


def philox(c, k):
    (c0, c1, c2, c3), (k0, k1) = c, k
    for _ in range(10):
        a, b = c0 * 0xD2511F53, c2 * 0xCD9E8D57
        c0, c1, c2, c3 = (b >> 32) ^ c1 ^ k0, b & M32, (a >> 32) ^ c3 ^ k1, a & M32
        k0, k1 = (k0 + 0x9E3779B9) & M32, (k1 + 0xBB67AE85) & M32
    return c0, c1, c2, c3


def mix(z):
    z ^= z >> 30
    z = z * 0xBF58476D1CE4E5B9 & M64
    z ^= z >> 27
    z = z * 0x94D049BB133111EB & M64
    return z ^ z >> 31


def key(seed, name):
    h = 0xCBF29CE484222325
    for byte in ("data:" + name).encode():
        h = (h ^ byte) * 0x100000001B3 & M64
    k = mix(mix(seed + 0x9E3779B97F4A7C15 & M64) ^ h)
    return k & M32, k >> 32


def below(k, index, epoch, bound):
    x = philox((index & M32, index >> 32, epoch & M32, epoch >> 32), k)
    return (x[1] << 32 | x[0]) * bound >> 64


def order(tokens, seq_len, seed, epoch):
    room = min(tokens - seq_len - 1, seq_len - 1)
    offset = below(key(seed, "offset"), 0, epoch, room + 1)
    starts = list(range(offset, tokens - seq_len, seq_len))
    for i in range(len(starts) - 1, 0, -1):
        j = below(key(seed, "order"), i, epoch, i + 1)
        starts[i], starts[j] = starts[j], starts[i]
    return starts


assert philox((0, 0, 0, 0), (0, 0)) == (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)
print(order(200, 16, 42, 0)[:6])
