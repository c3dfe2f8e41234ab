"""What a private training step costs: CPU time relative to ordinary training and to Opacus.

Steps of all kinds alternate in one process on one thread, so that a busy machine slows all of them alike; figures are
medians of CPU time. One thread, because CPU time counts threads that merely wait. All steps train ``width - 64 - 10``
with SELU on one fixed batch in float64 with Adam. Ours draws its noise from the product's cryptographic, grid-rounded
source; Opacus draws ordinary pseudo-random numbers.
"""

from __future__ import annotations

import math
import statistics
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_matrix
from torch import Tensor, nn

from graphveil.bench.machine import machine, one_thread, version
from graphveil.graph.rows import SparseRows
from graphveil.learn import MLP, Adam, Inputs, clipped_gradient_sum, descend
from graphveil.privacy.noise import Noise
from graphveil.progress import Progress, silent

Step = Callable[[], None]

HIDDEN, CLASSES = 64, 10
RATE, CLIP, SIGMA = 1e-3, 1.0, 1.0
PRIVATE = {"noise_multiplier": SIGMA / CLIP, "max_grad_norm": CLIP}
PHYSICAL_BATCH = 256
PAIRS = ((256, 256), (500, 256), (4714, 256), (4714, 2048))
KINDS = ("plain", "private", "ghost", "hooks")
SPARSE_PAIR, DENSITY = (4714, 256), 0.01
SLOW, SLOW_ROUNDS = {"hooks"}, 2
SMALL = 200_000


def run(pairs: Sequence[tuple[int, int]] = PAIRS, repeats: int = 25, progress: Progress = silent) -> dict[str, Any]:
    """Measure every pair (width, batch), and sparse against dense input: times, ratios, targets, whether they hold.

    Without Opacus its columns are null and their targets are left out; ``opacus`` in the result says so.
    ``repeats`` are rounds per pair, four times as many for small ones; slow per-sample hooks run in two of them.
    """
    opacus = version("opacus")
    results = []
    with one_thread():
        for done, (width, batch) in enumerate(pairs):
            progress("dp-gradients", done, len(pairs) + 1)
            rows, labels = _batch(width, batch, density=1.0)
            steps = {"plain": plain_step(rows, labels), "private": dense_step(rows, labels)}
            if opacus is not None:
                steps |= {"ghost": ghost_step(rows, labels), "hooks": hooks_step(rows, labels)}
            times = _measure(steps, repeats if width * batch > SMALL else 4 * repeats)
            sizes = {"width": width, "batch": batch, "hidden": HIDDEN}
            results.append(sizes | _compared(KINDS, times, targets(width, batch)))
        progress("dp-gradients", len(pairs), len(pairs) + 1)
        width, batch = SPARSE_PAIR
        rows, labels = _batch(width, batch, DENSITY)
        times = _measure({"dense": dense_step(rows, labels), "sparse": sparse_step(rows, labels)}, repeats)
        sparse: dict[str, Any] = {"width": width, "batch": batch, "density": DENSITY}
        sparse |= _compared(("dense", "sparse"), times, {"dense_over_sparse": 1.0})
        progress("dp-gradients", len(pairs) + 1, len(pairs) + 1)
    return {
        "benchmark": "dp-gradients",
        "unit": "CPU milliseconds per step, median",
        "network": f"width - {HIDDEN} - {CLASSES}, SELU, Adam",
        "dtype": "float64",
        "threads": 1,
        "repeats": repeats,
        "machine": machine(),
        "opacus": opacus or "not installed: compared with ordinary training only",
        "results": results,
        "sparse": sparse,
        "ok": all(result["ok"] for result in [*results, sparse]),
    }


def as_text(report: Mapping[str, Any]) -> str:
    """The report of ``run`` for people: one line per measurement, each ratio with its limit."""
    lines = [
        f"{report['network']}, {report['dtype']}, one thread; {report['unit']}; Opacus {report['opacus']}",
        f"{'width':>6}{'batch':>7}{'plain':>9}{'private':>9}{'ghost':>9}{'hooks':>9}"
        f"{'private/plain':>22}{'hooks/private':>22}{'ghost/private':>22}",
    ]
    for result in report["results"]:
        times = "".join(_figure(result[f"{kind}_ms"]).rjust(9) for kind in KINDS)
        ratios = "".join(_ratio(name, result[name], limit).rjust(22) for name, limit in result["targets"].items())
        lines.append(f"{result['width']:>6}{result['batch']:>7}{times}{ratios}")
    sparse = report["sparse"]
    lines.append(
        f"sparse input, {sparse['density']:.0%} filled, width {sparse['width']}, batch {sparse['batch']}: "
        f"{_figure(sparse['sparse_ms'])} against {_figure(sparse['dense_ms'])} dense, "
        f"{sparse['dense_over_sparse']:.2f} times faster"
    )
    lines.append("all targets hold" if report["ok"] else "a target is missed")
    return "\n".join(lines)


def targets(width: int, batch: int) -> dict[str, float]:
    """Limits on the ratios: ``private_over_plain`` at most, the others at least."""
    return {
        "private_over_plain": 1.5 if batch >= 2048 else 2.0,
        "hooks_over_private": 8.0 if width >= 4714 else 3.0,
        "ghost_over_private": 1.0,
    }


def _compared(kinds: Sequence[str], times: Mapping[str, float], limits: dict[str, float]) -> dict[str, Any]:
    """Times and the ratios that have a limit, named ``A_over_B``; null where a kind was not measured."""
    found: dict[str, Any] = {f"{kind}_ms": round(times[kind], 3) if kind in times else None for kind in kinds}
    for name in limits:
        above, below = name.split("_over_")
        found[name] = round(times[above] / times[below], 3) if {above, below} <= times.keys() else None
    held = all(_holds(name, found[name], limit) for name, limit in limits.items() if found[name] is not None)
    return found | {"targets": limits, "ok": held}


def _figure(milliseconds: float | None) -> str:
    return "-" if milliseconds is None else f"{milliseconds:.2f}"


def _ratio(name: str, ratio: float | None, limit: float) -> str:
    if ratio is None:
        return "-"
    bound = "at most" if name == "private_over_plain" else "at least"
    return f"{ratio:.2f} ({bound} {limit:g})" + ("" if _holds(name, ratio, limit) else " !")


def _holds(name: str, ratio: float, limit: float) -> bool:
    return ratio <= limit if name == "private_over_plain" else ratio >= limit


def _measure(steps: Mapping[str, Step], repeats: int) -> dict[str, float]:
    """Median CPU milliseconds per step; the kinds alternate, starting with another one each round."""
    times: dict[str, list[float]] = {name: [] for name in steps}
    names = list(steps)
    pause = max(1, math.ceil(repeats / SLOW_ROUNDS))
    for step in steps.values():
        step()
    for number in range(repeats):
        shift = number % len(names)
        for name in names[shift:] + names[:shift]:
            if name not in SLOW or number % pause == 0:
                start = time.process_time()
                steps[name]()
                times[name].append(1e3 * (time.process_time() - start))
    return {name: statistics.median(values) for name, values in times.items()}


def _batch(width: int, batch: int, density: float) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(batch, width, dtype=torch.float64, generator=generator)
    if density < 1:
        rows *= torch.rand(batch, width, generator=generator) < density
    rows /= rows.norm(dim=1, keepdim=True).clamp(min=1e-12)
    return rows, torch.randint(CLASSES, (batch,), generator=generator)


def private_step(batch: Callable[[], Inputs], labels: Tensor, width: int) -> Step:
    """Forward, clipped sum, noise for every parameter, optimiser update, as the methods do it."""
    network = MLP((width, HIDDEN, CLASSES)).initialise(np.random.default_rng(0))
    optimizer, noise = Adam(RATE), Noise()
    total = torch.empty_like(network.parameters)

    def gradient(_: int) -> Tensor:
        clipped_gradient_sum(network, batch(), labels, CLIP, out=total)
        released = noise.add(total.numpy(), noise.gaussian(SIGMA, total.numel()), SIGMA)
        return torch.from_numpy(released)

    return lambda: descend(network, gradient, optimizer, steps=1, divisor=len(labels))


def dense_step(rows: Tensor, labels: Tensor) -> Step:
    """The private step on dense rows."""
    return private_step(lambda: rows, labels, rows.shape[1])


def sparse_step(rows: Tensor, labels: Tensor) -> Step:
    """The private step on sparse rows, as fresh as a newly drawn batch: nothing is kept from the step before."""
    matrix = csr_matrix(rows.numpy())
    return private_step(lambda: SparseRows(matrix), labels, rows.shape[1])


def plain_step(rows: Tensor, labels: Tensor) -> Step:
    """Ordinary autograd and ``torch.optim``."""
    model = _model(rows.shape[1])
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(rows), labels).backward()
        optimizer.step()

    return step


def hooks_step(rows: Tensor, labels: Tensor) -> Step:
    """Opacus with per-sample gradients; large batches in physical batches, as its BatchMemoryManager does."""
    from opacus import GradSampleModule
    from opacus.optimizers import DPOptimizer

    model = GradSampleModule(_model(rows.shape[1]))
    optimizer = DPOptimizer(torch.optim.Adam(model.parameters(), lr=RATE), expected_batch_size=len(rows), **PRIVATE)
    parts = list(zip(rows.split(PHYSICAL_BATCH), labels.split(PHYSICAL_BATCH), strict=True))

    def step() -> None:
        for number, (part, targets) in enumerate(parts, start=1):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(part), targets).backward()
            optimizer.signal_skip_step(do_skip=number < len(parts))
            optimizer.step()

    return _quietly(step)


def ghost_step(rows: Tensor, labels: Tensor) -> Step:
    """Opacus with ghost clipping: norms in a first backward pass, the weighted gradient in a second."""
    from opacus.grad_sample.grad_sample_module_fast_gradient_clipping import GradSampleModuleFastGradientClipping
    from opacus.optimizers.optimizer_fast_gradient_clipping import DPOptimizerFastGradientClipping
    from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping

    model = GradSampleModuleFastGradientClipping(_model(rows.shape[1]), max_grad_norm=CLIP, use_ghost_clipping=True)
    adam = torch.optim.Adam(model.parameters(), lr=RATE)
    optimizer = DPOptimizerFastGradientClipping(adam, expected_batch_size=len(rows), **PRIVATE)
    criterion = DPLossFastGradientClipping(model, optimizer, nn.CrossEntropyLoss())

    def step() -> None:
        optimizer.zero_grad()
        criterion(model(rows), labels).backward()
        optimizer.step()

    return _quietly(step)


def _model(width: int) -> nn.Module:
    return nn.Sequential(nn.Linear(width, HIDDEN), nn.SELU(), nn.Linear(HIDDEN, CLASSES)).double()


def _quietly(step: Step) -> Step:
    def silent() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            step()

    return silent
