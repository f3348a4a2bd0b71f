"""Environments for learning (Gymnasium): an agent in place of one policy of a simulated connection.

Importing this module registers `anabranch/Scheduler-v0`, `anabranch/CongestionControl-v0` and
`anabranch/PathManager-v0`; `gymnasium.make("anabranch.gym:anabranch/Scheduler-v0")` imports it. `make_vec` makes a
`VectorEnv`, whose environments advance on threads without Python's lock. Any thread may use an environment; where
several do, one waits for the other.

An episode is a run of the scenario: it is truncated at the end of its duration, and terminates earlier only if the
transfer ends. Each step simulates `interval` seconds. What happens is a function of scenario, policy, actions and seed
alone; `reset(seed=7)` begins what `anabranch.run(scenario, seeds=[7])` would run.

Observations: float32, ten numbers per path in the scenario's order, then six of the connection; `features` has their
names and units. Of a path: established, suspended (0 or 1); smoothed_rtt, min_rtt (ms); cwnd, in_flight (segments);
acked, sent without retransmissions (Mbit/s over the step); lost (share of what was sent in the step); since_progress
(ms). Of the connection: goodput (Mbit/s over the step); outstanding, window_left, out_of_order (kB now); reinjected (kB
in the step); stalled (ms, length of the present stall). All are zero at the reset, and those of a path while it has no
established subflow. With `observes="sender"` there are three of the connection, which a scheduler knows on a real
network too: acked (Mbit/s at data level over the step); outstanding, window_left (kB now).

Actions, a number per path. Scheduler: Box, 0 to 1, the weight by which new data is divided among the subflows with
room; a path of weight 0, a backup or a stale subflow is used only if there is no other. CongestionControl: Box, -1 to
1, the logarithm to base 2 of the factor of the congestion window in this step. PathManager: MultiBinary, 1 where the
path may carry new data and 0 where it is suspended; if all are 0, nothing changes.

Rewards of a step: "goodput", data delivered in order as a share of the sum of the paths' rates; "aurora", the linear
reward of Jay et al. (ICML 2019), divided by its throughput term at full rate; "power", the square root of the first
over the round-trip time in units of the least one (Giessler et al., 1978); "stalls", the first less one per second of
the present stall.
"""

from __future__ import annotations

import json
import operator
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, SupportsIndex, TypeAlias

import numpy as np
import numpy.typing as npt

from anabranch import _native
from anabranch._request import Scenario, requests

try:
    import gymnasium
    from gymnasium import spaces
    from gymnasium.utils import EzPickle
    from gymnasium.utils.seeding import np_random
    from gymnasium.vector import AutoresetMode
    from gymnasium.vector.utils import batch_space
except ImportError as missing:
    raise ImportError("anabranch.gym needs Gymnasium 1.1 or later: pip install 'anabranch[gym]'") from missing

__all__ = ["Environment", "VectorEnv"]

Observation: TypeAlias = npt.NDArray[np.float32]
Action: TypeAlias = npt.NDArray[Any]
Rewards: TypeAlias = npt.NDArray[np.float64]
Flags: TypeAlias = npt.NDArray[np.bool_]

#: Seeds that are drawn are below this, which is the distance of the seeds of an environment's episodes in a vector.
SEEDS = 1 << 32
#: The last seed of an episode, as of a run. What follows it in a vector begins again at 0.
LAST_SEED = (1 << 63) - 1


class _Worlds:
    """The compiled environments with their spaces, and the checks of what comes from outside."""

    def __init__(
        self,
        *,
        scenario: Scenario,
        policy: str | None,
        interval: float,
        reward: str,
        decides: str,
        observes: str,
        set: Mapping[str, object] | None,
        count: int,
        threads: int,
        agents: int = 1,
    ) -> None:
        (request,) = requests(
            scenario,
            policies=policy,
            set=set,
            first_policy_only=True,
        )
        self.compiled = _native.Environments(
            json.dumps(request), decides, observes, reward, interval, (count, agents, threads)
        )
        self.paths = self.compiled.paths
        self.features = self.compiled.features
        self.action_space = _action_space(decides, len(self.paths))
        self.observation_space = _observation_space(self.features)
        self.limits = (-1.0, 1.0) if decides == "congestion" else (0.0, 1.0)
        self.decides = decides
        self.observes = observes
        self.interval = interval
        self.rows = count * agents

    def reset(self, seeds: list[int]) -> Observation:
        """Begins an episode of each environment."""
        return self.compiled.reset(seeds)

    def step(self, actions: object) -> tuple[Observation, Rewards, Flags, Flags, npt.NDArray[np.uint64]]:
        """Carries out a row of actions for each agent of each environment."""
        return self.compiled.step(self._checked(actions))

    def _checked(self, actions: object) -> npt.NDArray[np.float32]:
        """Actions as the compiled part takes them."""
        low, high = self.limits
        wanted = f"an action is a number of {low:g} to {high:g} for each of {', '.join(self.paths)}"
        try:
            given = np.asarray(actions)
            if np.iscomplexobj(given):
                raise ValueError("numbers with an imaginary part")
            numbers = np.ascontiguousarray(given, dtype=np.float32)
        except (TypeError, ValueError):
            raise ValueError(f"{wanted}, and {actions!r} is none") from None
        shape = (self.rows, len(self.paths))
        if numbers.shape != shape:
            raise ValueError(f"{wanted}: an array of shape {shape} in all, and not {numbers.shape}")
        # This is also false for NaN.
        if self.decides != "nothing" and not (numbers.min() >= low and numbers.max() <= high):
            raise ValueError(f"{wanted}, and {numbers.tolist()} has others")
        if self.decides == "path_manager" and not np.isin(numbers, (0.0, 1.0)).all():
            raise ValueError(
                f"an action is 0 or 1 for each of {', '.join(self.paths)}, and {numbers.tolist()} has others"
            )
        return numbers


def _action_space(decides: str, paths: int) -> spaces.Space[Action]:
    """A number per path, or a bit."""
    if decides == "path_manager":
        return spaces.MultiBinary(paths)
    return spaces.Box(-1.0 if decides == "congestion" else 0.0, 1.0, (paths,), np.float32)


def _observation_space(features: Sequence[tuple[str, str]]) -> spaces.Space[Observation]:
    """From zero on; to one what is a truth or a share, the others without a limit."""
    shares = [unit == "1" or unit.startswith("share") for _, unit in features]
    high = np.where(shares, 1.0, np.inf).astype(np.float32)
    return spaces.Box(np.zeros(len(features), np.float32), high, dtype=np.float32)


def _no_options(options: Mapping[str, Any] | None) -> None:
    if options:
        raise ValueError(f"reset takes a seed and no options, and not {', '.join(options)}")


def _valid_seed(seed: SupportsIndex) -> int:
    try:
        whole = operator.index(seed)
    except TypeError:
        whole = -1
    if not 0 <= whole <= LAST_SEED:
        raise ValueError(f"a seed is a whole number from 0 to {LAST_SEED}, and not {seed!r}")
    return whole


class Environment(gymnasium.Env[Observation, Action], EzPickle):
    """One environment; spaces, units and rewards are those of this module.

    A copy, by `pickle` or `copy.deepcopy`, is a new one with the same arguments, before its first `reset`.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 (it is Gymnasium's)

    def __init__(
        self,
        *,
        scenario: Scenario = "two_paths",
        policy: str | None = None,
        interval: float = 0.1,
        reward: str = "goodput",
        decides: str = "scheduler",
        observes: str = "both_ends",
        set: Mapping[str, object] | None = None,
    ) -> None:
        """Checks everything; the first episode begins with `reset`.

        scenario: as of `anabranch.run`: paths and a transfer by upload.
        policy: policies of both ends, except the one that the agent replaces; the scenario's first one if None. It is
        multipath on all paths.
        interval: simulated time of a step, s.
        reward: "goodput", "aurora", "power" or "stalls".
        decides: what the agent replaces: "scheduler", "congestion", "path_manager", or "nothing", with which the
        policy alone decides and actions change nothing.
        observes: "both_ends", or "sender" for an agent that is to be exported (`anabranch.learned`).
        set: values of the scenario to change, by dotted path.

        Raises ValueError if anything is wrong, FileNotFoundError if there is no such scenario.
        """
        arguments: dict[str, Any] = {
            "scenario": scenario,
            "policy": policy,
            "interval": interval,
            "reward": reward,
            "decides": decides,
            "observes": observes,
            "set": set,
        }
        EzPickle.__init__(self, **arguments)
        self._worlds: _Worlds | None = _Worlds(**arguments, count=1, threads=1)
        self.action_space = self._worlds.action_space
        self.observation_space = self._worlds.observation_space
        #: Names of the paths, in the order of actions.
        self.paths = self._worlds.paths
        #: Name and unit of each number of an observation.
        self.features = self._worlds.features
        self._running = False

    def reset(
        self, *, seed: SupportsIndex | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begins an episode: with this seed, or with one drawn after the last that was given.

        The info has the episode's seed.
        """
        _no_options(options)
        given = None if seed is None else _valid_seed(seed)
        super().reset(seed=given)
        chosen = int(self.np_random.integers(1, SEEDS)) if given is None else given
        observations = self._open().reset([chosen])
        self._running = True
        return observations[0], {"seed": chosen}

    def step(self, action: Action) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Carries out the action for an interval.

        Raises ValueError if it is no action, RuntimeError if the episode has ended.
        """
        worlds = self._open()
        if not self._running:
            raise RuntimeError("there is no running episode: reset comes before the first step and after the last one")
        observations, rewards, terminated, truncated, seeds = worlds.step([action])
        self._running = not (terminated[0] or truncated[0])
        return observations[0], float(rewards[0]), bool(terminated[0]), bool(truncated[0]), {"seed": int(seeds[0])}

    @property
    def trace_hash(self) -> str:
        """The hash over all events of the episode until now, as in the column of a run."""
        return self._open().compiled.trace_hashes()[0]

    def close(self) -> None:
        """Ends its thread."""
        self._worlds = None

    def _open(self) -> _Worlds:
        if self._worlds is None:
            raise RuntimeError("the environment is closed")
        return self._worlds


class VectorEnv(gymnasium.vector.VectorEnv[Observation, Action, npt.NDArray[Any]], EzPickle):
    """Environments that advance together on threads; a row of each array is of one environment.

    One whose episode has ended begins the next one in the step after, which ignores its action and has reward 0; the
    seed of that episode is 2^32 above the one before, and `Environment.reset` takes it. Results do not depend on the
    number of threads. A copy is a new one with the same arguments, before its first `reset`.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 (it is Gymnasium's)
        "render_modes": [],
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(
        self,
        num_envs: int = 1,
        *,
        threads: int | None = None,
        scenario: Scenario = "two_paths",
        policy: str | None = None,
        interval: float = 0.1,
        reward: str = "goodput",
        decides: str = "scheduler",
        observes: str = "both_ends",
        set: Mapping[str, object] | None = None,
    ) -> None:
        """Like `Environment`, for `num_envs` of them on `threads` threads: as many as processors if None."""
        if num_envs < 1 or (threads is not None and threads < 1):
            raise ValueError("a vector has at least one environment and one thread")
        arguments: dict[str, Any] = {
            "scenario": scenario,
            "policy": policy,
            "interval": interval,
            "reward": reward,
            "decides": decides,
            "observes": observes,
            "set": set,
        }
        EzPickle.__init__(self, num_envs, threads=threads, **arguments)
        self._worlds: _Worlds | None = _Worlds(**arguments, count=num_envs, threads=threads or os.cpu_count() or 1)
        self.num_envs = num_envs
        self.single_action_space = self._worlds.action_space
        self.single_observation_space = self._worlds.observation_space
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        #: Names of the paths, in the order of actions.
        self.paths = self._worlds.paths
        #: Name and unit of each number of an observation.
        self.features = self._worlds.features
        self._draws = [np_random()[0] for _ in range(num_envs)]
        self._running = False

    def reset(
        self,
        *,
        seed: SupportsIndex | Iterable[SupportsIndex | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Observation, dict[str, Any]]:
        """Begins an episode of each environment.

        seed: that of the first one, the others follow by one; or one of each (None: drawn); all are drawn if None.
        An environment draws after the last seed that it was given. The info has the seeds of the episodes.
        """
        _no_options(options)
        if seed is None:
            given: list[int | None] = [None] * self.num_envs
        elif isinstance(seed, Iterable) and not isinstance(seed, str):
            given = [None if one is None else _valid_seed(one) for one in seed]
        else:
            first = _valid_seed(seed)
            given = [_valid_seed(first + place) for place in range(self.num_envs)]
        if len(given) != self.num_envs:
            raise ValueError(f"{len(given)} seeds for {self.num_envs} environments")
        # Each draws after the last one that it was given, as it would alone.
        for place, one in enumerate(given):
            if one is not None:
                self._draws[place] = np_random(one)[0]
        if given[0] is not None:
            super().reset(seed=given[0])
        seeds = [
            int(draws.integers(1, SEEDS)) if one is None else one for one, draws in zip(given, self._draws, strict=True)
        ]
        observations = self._open().reset(seeds)
        self._running = True
        return observations, self._info(np.array(seeds, np.uint64))

    def step(
        self, actions: Action
    ) -> tuple[Observation, npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any], dict[str, Any]]:
        """Carries out the actions for an interval: observations, rewards, terminated, truncated, info.

        Raises ValueError if they are no actions, RuntimeError if there was no reset.
        """
        worlds = self._open()
        if not self._running:
            raise RuntimeError("there is no running episode: reset comes before the first step")
        observations, rewards, terminated, truncated, seeds = worlds.step(actions)
        return observations, rewards, terminated, truncated, self._info(seeds)

    @property
    def trace_hashes(self) -> list[str]:
        """The hashes over all events of the present episodes until now, as in the column of a run."""
        return self._open().compiled.trace_hashes()

    def close_extras(self, **kwargs: Any) -> None:
        """Ends its threads."""
        del kwargs
        self._worlds = None

    def _info(self, seeds: npt.NDArray[np.uint64]) -> dict[str, Any]:
        return {"seed": seeds, "_seed": np.ones(self.num_envs, np.bool_)}

    def _open(self) -> _Worlds:
        if self._worlds is None:
            raise RuntimeError("the environments are closed")
        return self._worlds


def _register() -> None:
    agents = {"Scheduler": "scheduler", "CongestionControl": "congestion", "PathManager": "path_manager"}
    for name, decides in agents.items():
        if f"anabranch/{name}-v0" not in gymnasium.registry:
            gymnasium.register(
                f"anabranch/{name}-v0",
                entry_point="anabranch.gym:Environment",
                vector_entry_point="anabranch.gym:VectorEnv",
                kwargs={"decides": decides},
            )


_register()
