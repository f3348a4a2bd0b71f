"""Trains a scheduler by PPO (stable-baselines3) and compares it with built-in ones on seeds that it has not seen.

    pip install '.[gym]' stable-baselines3 matplotlib
    python python/examples/train_scheduler.py

Two paths whose delays vary slowly between 10 and 150 ms, and a receive buffer that is too small for both: a scheduler
that fills the later path blocks the earlier one. The agent divides new data by weights, every 100 ms. Beside it stand
the constant weights that were best on the seeds of the training. Prints means with 95 % intervals and draws
train_scheduler.png.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import gymnasium
import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt
from gymnasium.wrappers import RescaleAction
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize

import anabranch
from anabranch.gym import Environment
from anabranch.learned import Network

DELAY = {"uniform": "10..150 ms", "drawn": "slowly_varying", "every": "500 ms"}
SET = {
    "duration": "10 s",
    "connection.receive_buffer.initial": "64 KiB",
    "connection.receive_buffer.max": "128 KiB",
    "paths.fast.links.0.delay": DELAY,
    "paths.slow.links.0.delay": DELAY,
}
INTERVAL = 0.1
#: Of both paths, Mbit/s.
RATES = 15.0
POLICIES = ["scheduler=lowest_rtt", "scheduler=blest", "scheduler=ecf", "anabranch"]
#: Of the training, and of the constant weights: far from those of the comparison.
FIRST_TRAINED = 1_000_000
WEIGHTS = [(1.0, 1.0), (1.0, 0.5), (1.0, 0.25), (1.0, 0.1), (1.0, 0.0), (0.5, 1.0)]

Policy = Callable[[npt.NDArray[np.float32]], npt.NDArray[np.float32]]


def environment() -> gymnasium.Env[Any, Any]:
    """The environment, with actions of -1 to 1, which suit a Gaussian policy.

    Its reward is the share of the paths' rates that is delivered in order.
    """
    inner = Environment(
        scenario="two_paths", policy="plain", set=SET, reward="goodput", observes="sender", interval=INTERVAL
    )
    return RescaleAction(inner, np.float32(-1), np.float32(1))


def goodput(policy: Policy, seeds: range) -> list[float]:
    """Mean goodput of each seed's episode, Mbit/s."""
    env, means = environment(), []
    for seed in seeds:
        observation, _ = env.reset(seed=seed)
        steps, ended = [], False
        while not ended:
            observation, reward, terminated, truncated, _ = env.step(policy(observation))
            steps.append(float(reward) * RATES)
            ended = terminated or truncated
        # The first two seconds are the warm-up of `run`.
        means.append(float(np.mean(steps[20:])))
    return means


def train(steps: int) -> tuple[Policy, Network]:
    """A policy trained for so many steps, and its network."""
    env = VecNormalize(make_vec_env(environment, n_envs=8, seed=FIRST_TRAINED), norm_reward=False)
    small = {"net_arch": {"pi": [32, 32], "vf": [64, 64]}}
    model = PPO(
        "MlpPolicy",
        env,
        n_steps=256,
        batch_size=256,
        gamma=0.9,
        learning_rate=1e-3,
        policy_kwargs=small,
        seed=1,
        device="cpu",
    )
    model.learn(steps)
    env.training = False

    def policy(observation: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        normal = env.normalize_obs(observation)
        action: npt.NDArray[np.float32] = model.predict(normal, deterministic=True)[0]
        return action

    exported = Network.from_stable_baselines3(model, paths=2, interval=INTERVAL, normalize=env, range=(-1.0, 1.0))
    return policy, exported


def constant(weights: tuple[float, float]) -> Policy:
    """Always the same weights."""
    action = 2 * np.array(weights, np.float32) - 1
    return lambda _: action


def main() -> None:
    """Trains, compares, draws."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--steps", type=int, default=200_000, help="steps of the training [200000]")
    parser.add_argument("--seeds", type=int, default=40, help="seeds of the comparison, from 1 on [40]")
    asked = parser.parse_args()
    seeds = range(1, asked.seeds + 1)
    trained, exported = train(asked.steps)
    exported.save("trained_scheduler.txt")
    chosen = max(
        WEIGHTS, key=lambda weights: np.mean(goodput(constant(weights), range(FIRST_TRAINED, FIRST_TRAINED + 20)))
    )
    learned = "scheduler=learned,scheduler.weights=@trained_scheduler.txt"
    runs = anabranch.compare("two_paths", policies=[*POLICIES, learned], seeds=seeds, set=SET).to_pandas()
    results: dict[str, list[float]] = {
        policy.removeprefix("scheduler=").split("+")[0]: list(runs[runs["policy"] == policy]["throughput"])
        for policy in runs["policy"].unique()
    }
    results[f"weights {chosen[0]:g}:{chosen[1]:g}"] = goodput(constant(chosen), seeds)
    results["trained (PPO)"] = goodput(trained, seeds)
    names = sorted(results, key=lambda name: np.mean(results[name]))
    means = [float(np.mean(results[name])) for name in names]
    errors = [1.96 * float(np.std(results[name], ddof=1)) / len(results[name]) ** 0.5 for name in names]
    for name, mean, error in zip(names, means, errors, strict=True):
        print(f"{name:20} {mean:6.2f} ± {error:.2f} Mbit/s")
    figure, axes = plt.subplots(figsize=(7, 3.5))
    axes.barh(names, means, xerr=errors, color=["tab:orange" if "PPO" in name else "tab:blue" for name in names])
    axes.set_xlabel(f"goodput, Mbit/s, mean of {asked.seeds} unseen seeds with 95 % intervals")
    figure.tight_layout()
    figure.savefig("train_scheduler.png", dpi=120)


if __name__ == "__main__":
    main()
