"""The operations of a program that is lowered for a device, which need not be present."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax


class Op(NamedTuple):
    """An operation of a lowered program.

    Attributes:
      name: for example ``stablehlo.sort``; for custom calls, their target.
      depth: number of loops around it.
      where: the lines of Python from which it comes.
    """

    name: str
    depth: int
    where: str


def operations(
    function: Callable[..., Any], args: Sequence[Any], platforms: Sequence[str]
) -> dict[str, list[Op]]:
    """All operations of ``function(*args)`` by platform; nothing is compiled."""
    traced = jax.jit(function).trace(*args)
    found = {}
    for platform in platforms:
        module = traced.lower(lowering_platforms=(platform,)).compiler_ir("stablehlo")
        functions = {op.attributes["sym_name"].value: op for op in module.body.operations}
        found[platform] = list(_of(functions["main"], 0, "", functions))
    return found


def _of(parent: Any, depth: int, called_at: str, functions: dict[str, Any]) -> Iterator[Op]:
    for region in parent.regions:
        for block in region.blocks:
            for op in block.operations:
                name, where = op.operation.name, f"{op.location} {called_at}"
                if name == "func.call":
                    called = functions[op.attributes["callee"].value]
                    yield from _of(called, depth, where, functions)
                    continue
                if name == "stablehlo.custom_call":
                    name = op.attributes["call_target_name"].value
                yield Op(name, depth, where)
                yield from _of(op, depth + (name == "stablehlo.while"), called_at, functions)
