"""PyTorch's CPU permutation in NumPy, which repeats published splits without PyTorch."""

import numpy as np

_MAX_LENGTH = (2**32 - 1) // 20
"""The greatest length for which PyTorch uses this algorithm."""


def torch_randperm(n: int, seed: int) -> np.ndarray:
    """The permutation ``torch.randperm(n, generator=torch.Generator().manual_seed(seed))``, int64.

    Fisher-Yates over the 32-bit words of a Mersenne twister, on the CPU, as PyTorch does it.

    Args:
        n: length, from 0 to 214,748,364; ValueError for any other.
        seed: any integer; as in PyTorch, only its lowest 32 bits matter.

    Examples:
      >>> print(fsjax.data.torch_randperm(5, seed=0))  # as torch.randperm
      >>> train, test = fsjax.data.torch_random_split(10, (8, 2), seed=0)
    """
    if not 0 <= n <= _MAX_LENGTH:
        raise ValueError(f"n={n}; choose a length from 0 to {_MAX_LENGTH}")
    order = list(range(n))
    if n > 1:
        words = np.random.RandomState(seed & 0xFFFFFFFF).randint(
            0, 2**32, size=n - 1, dtype=np.uint32
        )
        jumps = words.astype(np.int64) % (n - np.arange(n - 1))
        for i, jump in enumerate(jumps.tolist()):
            order[i], order[i + jump] = order[i + jump], order[i]
    return np.asarray(order, dtype=np.int64)


def torch_random_split(n: int, lengths: tuple[int, ...], seed: int) -> list[np.ndarray]:
    """The indices that ``torch.utils.data.random_split`` draws for whole-number lengths.

    Args:
        n: number of rows.
        lengths: rows of each part; ValueError unless they sum to ``n``.
        seed: of the PyTorch generator.

    Returns:
        One int64 array per part, consecutive slices of one permutation.
    """
    if sum(lengths) != n:
        raise ValueError(f"lengths={lengths} sum to {sum(lengths)}; choose lengths that sum to {n}")
    return np.split(torch_randperm(n, seed), np.cumsum(lengths)[:-1])
