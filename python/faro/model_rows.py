"""A model's tensors of floats, and rows of their values."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator

import torch

from . import collective

DTYPES = (torch.float32, torch.float64)


class Tensors:
    """The model's parameters, and its persistent buffers of floats, as they are now."""

    def __init__(self, model: torch.nn.Module):
        good = isinstance(model, torch.nn.Module)
        collective.check_argument("model", model, good, "a torch.nn.Module")
        self._parameters, self._buffers = [], []
        # One for each: what must be the same in all processes.
        self.lines = []
        for name, one in model.named_parameters():
            self._keep("parameter", name, one, self._parameters)
        for prefix, module in model.named_modules():
            for name, one in module.named_buffers(prefix, recurse=False):
                if name.rpartition(".")[2] not in module._non_persistent_buffers_set:
                    self._keep("buffer", name, one, self._buffers)
        if not self._parameters:
            raise ValueError("the model has no parameters")

    def _keep(self, kind: str, name: str, one: torch.Tensor, found: list[torch.Tensor]) -> None:
        if isinstance(one, torch.nn.parameter.UninitializedTensorMixin):
            raise ValueError(f"{kind} {name} has no shape yet: run the model once before")
        if one.device.type != "cpu":
            raise ValueError(
                f"{kind} {name} is on {one.device}: faro.torch averages tensors on the CPU; for "
                "others use torch.distributed.algorithms.model_averaging over NCCL"
            )
        shape = " x ".join(map(str, one.shape)) or "1"
        self.lines.append(f"{kind} {name} of {shape} {str(one.dtype)[6:]}")
        if one.dtype not in DTYPES:
            if kind == "parameter" or one.is_floating_point() or one.is_complex():
                allowed = ", ".join(map(str, DTYPES))
                raise ValueError(f"{kind} {name} is {one.dtype}; allowed: {allowed}")
            return
        if one.layout != torch.strided or one.is_inference() or shares_memory(one):
            raise ValueError(
                f"{kind} {name} is sparse, of inference mode, or has elements that share memory, "
                "so its values cannot be replaced"
            )
        found.append(one)

    def of(self, dtype: torch.dtype, with_buffers: bool) -> list[torch.Tensor]:
        found = self._parameters + self._buffers if with_buffers else self._parameters
        return [one for one in found if one.dtype == dtype]

    def rows(self, ranks: int, with_buffers: bool) -> list[Row]:
        found = {dtype: self.of(dtype, with_buffers) for dtype in DTYPES}
        return [
            Row(dtype, sum(one.numel() for one in tensors), ranks, with_buffers)
            for dtype, tensors in found.items()
            if tensors
        ]

    def digest(self, *more: str) -> bytes:
        return hashlib.sha256("\n".join([*self.lines, *more]).encode()).digest()


def shares_memory(one: torch.Tensor) -> bool:
    """Whether elements lie in one place, as those of `expand` do."""
    return any(size > 1 and not step for size, step in zip(one.shape, one.stride()))


def difference(lines: list[str], wanted: list[str]) -> tuple[str, str] | None:
    """The first line that is another one, and what it should be."""
    pairs = itertools.zip_longest(lines, wanted, fillvalue="nothing more")
    return next((pair for pair in pairs if pair[0] != pair[1]), None)


class Row:
    """The values of all tensors of one dtype in a row, and the number of their average."""

    def __init__(self, dtype: torch.dtype, count: int, ranks: int, with_buffers: bool):
        self.values = torch.empty(count + 1, dtype=dtype)
        self._with_buffers = with_buffers
        self._scale = scale_for(ranks)

    def _places(self, tensors: Tensors) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Each tensor, and its part of the row in its shape."""
        at = 0
        for one in tensors.of(self.values.dtype, self._with_buffers):
            yield one.detach(), self.values[at : at + one.numel()].view(one.shape)
            at += one.numel()

    @torch.no_grad()
    def gather(self, tensors: Tensors, number: int, scale: float | None = None) -> None:
        for one, place in self._places(tensors):
            torch.mul(one, scale or self._scale, out=place)
        self.values[-1] = number

    @torch.no_grad()
    def scatter(self, tensors: Tensors, scale: float | None = None) -> None:
        for one, place in self._places(tensors):
            torch.mul(place, 1 / (scale or self._scale), out=one)


def scale_for(ranks: int) -> float:
    """A power of two, which changes no digit of a number but of the smallest (subnormal) ones. With
    it no sum over the processes is beyond the largest number, where no value is."""
    return 0.5 ** (ranks - 1).bit_length()
