"""Sparse networks as NumPy arrays, and as files: the values of active connections, and where.

The files are SafeTensors files. Parameters without missing connections are stored as they are. Of
each other one there are

- ``values``: those of the active connections, in row-major order;
- ``quotients`` and ``remainders``: the gaps between the connections in Golomb-Rice code. The last b
  bits of each gap are stored as they are, and the rest of it in unary, as that many zeros and a
  one. With b = 0 the quotients are the bits of the mask.

Each layer has the b that makes it smallest. A connection of a layer of density d then takes less
than ``b + 1 + 1 / (d 2^b)`` bits beside its value, wherever the connections are; for random
positions, Golomb's code (1966) is close to the entropy.

The page "After training" of the documentation reads such a file with NumPy alone.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from fsjax import extras
from fsjax.errors import ConfigError, DataError
from fsjax.sparsity.masks import apply_masks, bool_masks
from fsjax.sparsity.trees import check_distinct, check_same_shapes, leaves_by_name, path_name
from fsjax.typing import PyTree

#: Name and version of the layout, in the metadata of each file.
LAYOUT = "fsjax sparse 1"

#: The arrays of a parameter with missing connections.
PARTS = ("values", "quotients", "remainders")

#: Largest number of bits of a remainder.
_MAX_BITS = 24


def save_sparse(path: str | os.PathLike[str], params: PyTree, masks: PyTree) -> None:
    """Saves a sparse network: the values of its active connections, and where they are.

    Weights at inactive connections are not saved, whatever they are. The file is a SafeTensors
    file; at a density of 0.1, the connections of a float32 layer take at most 1.17 times the bytes
    of their values. The module :mod:`fsjax.sparsity.sparse_files` describes the layout.

    Args:
      path: of the file; one that exists is replaced.
      params: arrays of numbers.
      masks: bool arrays in the structure of ``params``.

    Raises:
      MissingLibraryError: without the library safetensors, which is the extra ``safetensors``.
      ConfigError: if masks are not bool or not those of the parameters, or if a parameter is not
        an array of numbers, is of a type that SafeTensors lacks, or has the name of a part of
        another one.
      OSError: if the file cannot be written.

    Examples:
      >>> import os, tempfile
      >>> params = {"kernel": jax.random.normal(jax.random.key(0), (64, 10))}
      >>> masks = {"kernel": sparsity.random_mask(jax.random.key(1), (64, 10), 64)}
      >>> path = os.path.join(tempfile.mkdtemp(), "network.safetensors")
      >>> sparsity.save_sparse(path, params, masks)
      >>> params, masks = sparsity.load_sparse(path, params)
    """
    extras.require("safetensors", "save_sparse")
    from safetensors.numpy import save

    masks = bool_masks(masks)
    check_same_shapes(leaves_by_name(params), leaves_by_name(masks), "the parameters", "the masks")
    dense, active = to_numpy(params), to_numpy(masks)
    arrays: dict[str, np.ndarray] = {}
    sparse: dict[str, dict[str, Any]] = {}
    for name, array in dense.items():
        if active[name].all():
            arrays[name] = array
            continue
        mask = active[name].reshape(-1)
        quotients, remainders, bits = _encoded(mask)
        parts = (array.reshape(-1)[mask], quotients, remainders)
        arrays |= {f"{name}:{part}": of for part, of in zip(PARTS, parts, strict=True)}
        sparse[name] = {"shape": array.shape, "bits": bits}
    _check_storable(dense, sparse)
    content = save(arrays, {"layout": LAYOUT, "sparse": json.dumps(sparse)})
    # Under another name first, so that a crash leaves the file that was there.
    partial = Path(f"{os.fspath(path)}.partial")
    partial.write_bytes(content)
    partial.replace(path)


def load_sparse(path: str | os.PathLike[str], like: PyTree) -> tuple[PyTree, PyTree]:
    """Reads a file of :func:`save_sparse`.

    Args:
      path: of the file.
      like: parameters of the same network, or their shapes; they give structure and types.

    Returns:
      The parameters, 0 at inactive connections, and the masks.

    Raises:
      MissingLibraryError: without the library safetensors, which is the extra ``safetensors``.
      DataError: if the file is truncated, has another layout, or contradicts itself.
      ConfigError: if it is of another network; the message names a parameter.
      OSError: if the file cannot be read.
    """
    extras.require("safetensors", "load_sparse")
    dense, active = read(path)
    masks = {name: active.get(name, np.ones(array.shape, bool)) for name, array in dense.items()}
    types = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(jnp.shape(leaf), bool), like)
    return from_numpy(dense, like), from_numpy(masks, types)


def read(
    path: str | os.PathLike[str],
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """The parameters of a file, by path, and the masks of those with missing connections.

    Raises:
      DataError: as :func:`load_sparse`.
    """
    import safetensors

    try:
        with safetensors.safe_open(path, "numpy") as file:
            types = {name: file.get_slice(name).get_dtype() for name in file.keys()}  # noqa: SIM118
            # SafeTensors asks NumPy for the types of 8 bits, which it lacks.
            short = {name for name, code in types.items() if code.startswith("F8_")}
            arrays = {name: file.get_tensor(name) for name in types if name not in short}
            metadata = file.metadata() or {}
        raw = dict(safetensors.deserialize(Path(path).read_bytes())) if short else {}
        for name in short:
            code = {"F8_E4M3": "e4m3fn", "F8_E8M0": "e8m0fnu"}.get(types[name], types[name][3:])
            flat = np.frombuffer(raw[name]["data"], jnp.dtype(f"float8_{code.lower()}"))
            arrays[name] = flat.reshape(raw[name]["shape"])
    except (safetensors.SafetensorError, KeyError) as error:
        raise DataError(
            f"{os.fspath(path)} is truncated, or not a SafeTensors file of NumPy's types "
            f"({error}); save it again with save_sparse"
        ) from None
    if metadata.get("layout") != LAYOUT:
        raise DataError(
            f"{os.fspath(path)} has the layout {metadata.get('layout')!r}; load_sparse reads "
            f"{LAYOUT!r} of save_sparse, and from_numpy the arrays of other files"
        )
    masks = {}
    try:
        for name, layer in json.loads(metadata["sparse"]).items():
            values, quotients, remainders = (arrays.pop(f"{name}:{part}") for part in PARTS)
            places = _decoded(quotients, remainders, layer["bits"], len(values))
            masks[name], arrays[name] = (
                np.zeros(layer["shape"], bool),
                np.zeros_like(values, shape=layer["shape"]),
            )
            masks[name].reshape(-1)[places] = True
            arrays[name].reshape(-1)[places] = values
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise DataError(
            f"{os.fspath(path)} contradicts itself ({error}); save it again with save_sparse"
        ) from None
    return arrays, masks


def _encoded(mask: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """The code of a flat mask: quotients and remainders, uint8, and the bits of a remainder."""
    gaps = np.diff(np.flatnonzero(mask), prepend=-1) - 1
    bits = min(range(_MAX_BITS + 1), key=lambda b: len(gaps) * (1 + b) + int((gaps >> b).sum()))
    ends = np.cumsum((gaps >> bits) + 1)
    unary = np.zeros(ends[-1] if len(ends) else 0, bool)
    unary[ends - 1] = True
    digits = (gaps[:, None] >> np.arange(bits)[::-1]) & 1
    return np.packbits(unary), np.packbits(digits.astype(bool)), bits


def _decoded(quotients: np.ndarray, remainders: np.ndarray, bits: int, number: int) -> np.ndarray:
    """The positions of the connections of a flat mask; the inverse of :func:`_encoded`."""
    ones = np.flatnonzero(np.unpackbits(quotients))
    if len(ones) != number or len(remainders) != math.ceil(number * bits / 8):
        raise ValueError(f"{number} values at {len(ones)} positions")
    digits = np.unpackbits(remainders, count=number * bits).reshape(number, bits)
    gaps = ((np.diff(ones, prepend=-1) - 1) << bits) + digits @ (1 << np.arange(bits)[::-1])
    return np.cumsum(gaps + 1) - 1


def to_numpy(params: PyTree, masks: PyTree | None = None) -> dict[str, np.ndarray]:
    """Contiguous NumPy arrays of the parameters, by path, for example ``"params.Dense_0.kernel"``.

        safetensors.numpy.save_file(sparsity.to_numpy(params, masks), "network.safetensors")

    Args:
      params: arrays.
      masks: bool arrays in the structure of ``params``; weights are set to 0 where these are false.

    Raises:
      ConfigError: if a leaf is not an array of numbers, as in a compressed network, if two have the
        same name, or if masks are not bool.

    Examples:
      >>> params = {"kernel": jnp.ones((6, 4))}
      >>> masks = {"kernel": sparsity.random_mask(jax.random.key(1), (6, 4), 4)}
      >>> arrays = sparsity.to_numpy(params, masks)  # zeros where the mask is closed
      >>> params = sparsity.from_numpy(arrays, params)
    """
    for leaf in jax.tree.leaves(params):
        _check_numbers(leaf)
    if masks is not None:
        params = apply_masks(params, masks)
    leaves = leaves_by_name(params)
    check_distinct([_dotted(path) for path in leaves])
    return {_dotted(path): np.asarray(leaf, order="C") for path, leaf in leaves.items()}


def from_numpy(arrays: Mapping[str, np.ndarray], like: PyTree) -> PyTree:
    """The inverse of :func:`to_numpy`.

    Args:
      arrays: arrays by path.
      like: parameters of the same network, or their shapes; they give structure and types.

    Raises:
      ConfigError: if a path is missing or unknown, or an array has another shape, or numbers that
        the type of the parameter cannot hold.
    """
    expected = {_dotted(path): leaf for path, leaf in leaves_by_name(like).items()}
    check_same_shapes(arrays, expected, "the arrays", "the network")
    return jax.tree_util.tree_map_with_path(
        lambda path, leaf: _as_type(_dotted(path_name(path)), arrays, leaf.dtype), like
    )


def _dotted(path: str) -> str:
    return path.replace("/", ".")


def _as_type(name: str, arrays: Mapping[str, np.ndarray], dtype: Any) -> Array:
    """The array in the type of its parameter; floating point numbers may be rounded."""
    saved = np.asarray(arrays[name])
    cast = jnp.asarray(saved, dtype)
    is_exact = not jnp.issubdtype(dtype, jnp.inexact)
    if is_exact and not np.array_equal(np.asarray(cast).astype(saved.dtype), saved):
        raise ConfigError(
            f"{name} is {saved.dtype} with numbers that {dtype} of the network cannot hold; pass "
            "the array that was saved"
        )
    return cast


def _check_storable(dense: Mapping[str, np.ndarray], sparse: Collection[str]) -> None:
    """Checks names and types of parameters; ``sparse`` are those stored in parts."""
    from safetensors import SafetensorError
    from safetensors.numpy import save

    for name, array in dense.items():
        of, _, part = name.rpartition(":")
        if part in PARTS and of in sparse:
            raise ConfigError(
                f"the file would hold {name} twice, as {of} has such a part; rename one"
            )
        try:
            save({name: np.zeros(0, array.dtype)})
        except SafetensorError:
            raise ConfigError(
                f"{name} is {array.dtype}, a type that SafeTensors files do not have; convert it, "
                "for example with astype(jnp.int8)"
            ) from None


def _check_numbers(leaf: object) -> None:
    dtype = leaf.dtype if isinstance(leaf, jax.Array) else np.asarray(leaf).dtype
    if not any(jnp.issubdtype(dtype, kind) for kind in (np.number, np.bool_)):
        raise ConfigError(
            f"to_numpy takes the parameters of a network, not {type(leaf).__name__} of "
            f"{dtype}; pass to_numpy(params, masks), without keys, and call "
            "compress again after loading"
        )
