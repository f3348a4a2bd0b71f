"""Export of a trained scheduler: a file that the policy `scheduler=learned,scheduler.weights=@FILE` reads.

Such a policy runs wherever policies do: in the lab, and on real networks in `anabranch proxy`, `serve` and `up`. What
it sees and does there is that of the environment `anabranch/Scheduler-v0` with `observes="sender"`, in which it is to
be trained.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from anabranch import _native

__all__ = ["Layer", "Network"]

Numbers = npt.NDArray[np.float32]

#: Paths of a network.
MOST_PATHS = 16


@dataclass(frozen=True)
class Layer:
    """`activation(weights @ x + bias)`; the activation is "tanh", "relu" or "linear"."""

    #: Of shape (outputs, inputs).
    weights: Numbers
    #: Of shape (outputs,).
    bias: Numbers
    activation: str = "linear"


@dataclass(frozen=True)
class Network:
    """A feed-forward network from an observation to a number for each path.

    The observation is that of `anabranch/Scheduler-v0` with `observes="sender"`: 10 paths + 3 numbers.
    """

    #: Number of paths, 1 to 16.
    paths: int
    #: Simulated time of a step in the training, s.
    interval: float
    #: At most 8; the last one has an output for each path.
    layers: Sequence[Layer]
    #: Subtracted from the observation, of shape (10 paths + 3,); zeros if None.
    shift: Numbers | None = None
    #: Factor of what is left, of the same shape; ones if None.
    scale: Numbers | None = None
    #: Limit of the absolute value of what results.
    clip: float = 1e9
    #: Outputs that stand for the weights 0 and 1; outputs beyond are clipped.
    range: tuple[float, float] = (0.0, 1.0)

    def text(self) -> str:
        """The network as the file has it.

        Raises ValueError if it is none.
        """
        if not 1 <= self.paths <= MOST_PATHS:
            raise ValueError(f"a network has 1 to {MOST_PATHS} paths, and not {self.paths}")
        inputs = len(_native.network_features(self.paths))
        shift = np.zeros(inputs, np.float32) if self.shift is None else self.shift
        scale = np.ones(inputs, np.float32) if self.scale is None else self.scale
        for name, numbers in (("shift", shift), ("scale", scale)):
            if np.shape(numbers) != (inputs,):
                raise ValueError(f"the {name} has {inputs} numbers, of shape ({inputs},), and not {np.shape(numbers)}")
        lines = [
            "anabranch-network 1",
            f"paths {self.paths}",
            f"interval {float(self.interval)!r}",
            " ".join(["features", *_native.network_features(self.paths)]),
            _line("shift", shift),
            _line("scale", scale),
            f"clip {float(self.clip)!r}",
        ]
        for layer in self.layers:
            weights, bias = np.asarray(layer.weights, np.float32), np.asarray(layer.bias, np.float32)
            if weights.ndim != 2 or bias.shape != weights.shape[:1]:
                raise ValueError(
                    f"a layer has weights of shape (n, m) and a bias (n,), not {weights.shape}, {bias.shape}"
                )
            if weights.shape[1] != inputs:
                raise ValueError(f"a layer has {weights.shape[1]} inputs, and {inputs} numbers come to it")
            inputs = len(bias)
            lines.append(f"layer {len(bias)} {layer.activation}")
            lines.extend(_line("", [*row, offset]) for row, offset in zip(weights, bias, strict=True))
        lines.append(f"range {float(self.range[0])!r} {float(self.range[1])!r}")
        text = "\n".join(lines) + "\n"
        _native.network_weights(text, [])
        return text

    def save(self, file: str | os.PathLike[str]) -> None:
        """Writes the file.

        Raises ValueError if it is no network, OSError if the file cannot be written.
        """
        text = self.text()
        with open(file, "w", encoding="ascii") as opened:
            opened.write(text)

    def weights(self, observation: npt.ArrayLike) -> Numbers:
        """The weights, 0 to 1, that the scheduler gives the paths after this observation; computed in Rust."""
        text, numbers = self.text(), np.asarray(observation, np.float32)
        inputs = len(_native.network_features(self.paths))
        if numbers.shape != (inputs,):
            raise ValueError(f"an observation has {inputs} numbers, of shape ({inputs},), and not {numbers.shape}")
        return np.array(_native.network_weights(text, numbers.tolist()), np.float32)

    @classmethod
    def from_stable_baselines3(
        cls, model: Any, *, paths: int, interval: float, normalize: Any = None, range: tuple[float, float] = (0.0, 1.0)
    ) -> Network:
        """The deterministic policy of a PPO or A2C model with `MlpPolicy`.

        normalize: the `VecNormalize` around the environments of the training, if there was one.
        range: the actions that stand for the weights 0 and 1: (-1, 1) if they were rescaled by `RescaleAction`.

        Raises ValueError if the policy is not of linear layers with tanh or ReLU, or observes something else than a
        scheduler does on a network.
        """
        if not hasattr(model.policy, "mlp_extractor") or not hasattr(model.policy, "action_net"):
            raise ValueError(
                f"the policy is that of a PPO or A2C model with MlpPolicy, and {type(model).__name__} has another"
            )
        observed, known = model.observation_space.shape, len(_native.network_features(paths))
        if observed != (known,):
            raise ValueError(
                f"a scheduler knows {known} numbers of {paths} paths, and the model observes an array of shape "
                f'{observed}: train it on as many paths with observes="sender"'
            )
        layers: list[Layer] = []
        for module in [*model.policy.mlp_extractor.policy_net, model.policy.action_net]:
            name = type(module).__name__
            if name == "Linear":
                layers.append(Layer(module.weight.detach().cpu().numpy(), module.bias.detach().cpu().numpy()))
            elif name in ("Tanh", "ReLU") and layers:
                layers[-1] = Layer(layers[-1].weights, layers[-1].bias, name.lower())
            else:
                raise ValueError(f"a network is of linear layers with tanh or ReLU, and this one has a {name}")
        if normalize is None:
            return cls(paths, interval, layers, range=range)
        deviation = np.sqrt(normalize.obs_rms.var + normalize.epsilon)
        return cls(
            paths,
            interval,
            layers,
            shift=normalize.obs_rms.mean.astype(np.float32),
            scale=(1 / deviation).astype(np.float32),
            clip=float(normalize.clip_obs),
            range=range,
        )


def _line(name: str, numbers: Any) -> str:
    """A line of numbers that are read back to the last bit."""
    texts = [np.format_float_scientific(np.float32(number), unique=True, trim="-") for number in numbers]
    return " ".join([name, *texts] if name else texts)
