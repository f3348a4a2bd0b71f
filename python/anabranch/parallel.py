"""An environment in which several connections learn, each by its own agent (PettingZoo's parallel API).

    environment = anabranch.parallel.parallel_env(agents=2)

The connections have the same two hosts and the same paths, on which they compete. The first starts at once, each
further one at a time within the first second that is a function of the seed. What an agent observes and does, and its
reward, are those of `anabranch.gym` for its own connection; a share of the paths' rates is one of all paths, so that
rewards of "goodput" of all agents add up to at most about 1. An agent is the scheduler or the congestion control of its
connection; a path manager would be the host's.

An episode is a function of scenario, policy, actions and seed; `reset(seed=7)` begins what `anabranch.run(scenario,
seeds=[7], set={"transfer.connections": 2})` would run.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.utils import EzPickle

from anabranch._request import Scenario
from anabranch.gym import SEEDS, Action, Observation, _valid_seed, _Worlds

try:
    from pettingzoo import ParallelEnv
except ImportError as missing:
    raise ImportError(
        "anabranch.parallel needs PettingZoo 1.24 or later: pip install 'anabranch[pettingzoo]'"
    ) from missing

__all__ = ["ParallelEnvironment", "parallel_env"]


class ParallelEnvironment(ParallelEnv[str, Observation, Action], EzPickle):  # type: ignore[misc]  # it has no types
    """Connections that compete, with an agent each: "connection 1", "connection 2" and so on.

    A copy is a new one with the same arguments, before its first `reset`.
    """

    metadata: dict[str, Any] = {"render_modes": [], "name": "anabranch_v0", "is_parallelizable": True}  # noqa: RUF012

    def __init__(
        self,
        *,
        agents: int = 2,
        scenario: Scenario = "two_paths",
        policy: str | None = None,
        interval: float = 0.1,
        reward: str = "goodput",
        decides: str = "scheduler",
        observes: str = "both_ends",
        set: Mapping[str, object] | None = None,
    ) -> None:
        """Checks everything; the first episode begins with `reset`.

        agents: how many connections there are, each with an agent, 1 to 1000.
        decides: "scheduler", "congestion", or "nothing", with which actions change nothing.
        scenario, policy, interval, reward, observes, set: those of `anabranch.gym.Environment`.

        Raises ValueError if anything is wrong, FileNotFoundError if there is no such scenario.
        """
        arguments: dict[str, Any] = {
            "scenario": scenario,
            "policy": policy,
            "interval": interval,
            "reward": reward,
            "decides": decides,
            "observes": observes,
        }
        EzPickle.__init__(self, agents=agents, set=set, **arguments)
        changed = {**(set or {}), "transfer.connections": agents}
        self._worlds: _Worlds | None = _Worlds(**arguments, set=changed, count=1, threads=1, agents=agents)
        self.render_mode = None
        self.possible_agents = [f"connection {number + 1}" for number in range(agents)]
        self.agents: list[str] = []
        #: Names of the paths, in the order of actions.
        self.paths = self._worlds.paths
        #: Name and unit of each number of an observation.
        self.features = self._worlds.features
        # Spaces have a state, what they draw next: each agent has its own.
        self.action_spaces = {agent: deepcopy(self._worlds.action_space) for agent in self.possible_agents}
        self.observation_spaces = {agent: deepcopy(self._worlds.observation_space) for agent in self.possible_agents}
        self._random = np.random.default_rng()

    def action_space(self, agent: str) -> spaces.Space[Action]:
        """The space of an agent's actions, which all have in common."""
        return self.action_spaces[agent]

    def observation_space(self, agent: str) -> spaces.Space[Observation]:
        """The space of what an agent observes, which all have in common."""
        return self.observation_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Observation], dict[str, dict[str, Any]]]:
        """Begins an episode: with this seed, or with one drawn after the last that was given.

        Each agent's info has the episode's seed. There are no options: any are ignored, which PettingZoo's test asks.
        """
        del options
        if seed is not None:
            self._random = np.random.default_rng(_valid_seed(seed))
        chosen = int(self._random.integers(1, SEEDS)) if seed is None else int(seed)
        observations = self._open().reset([chosen])
        self.agents = list(self.possible_agents)
        return dict(zip(self.agents, observations, strict=True)), self._infos(chosen)

    def step(
        self, actions: dict[str, Action]
    ) -> tuple[dict[str, Observation], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        """Carries out the agents' actions for an interval: observations, rewards, terminated, truncated, infos.

        Raises ValueError if there is not an action of each agent, RuntimeError if the episode has ended.
        """
        worlds, agents = self._open(), self.agents
        if not agents:
            raise RuntimeError("there is no running episode: reset comes before the first step and after the last one")
        if actions.keys() != set(agents):
            raise ValueError(
                f"actions are of {', '.join(agents)}, and not of {', '.join(map(str, actions)) or 'nobody'}"
            )
        seen, rewards, terminated, truncated, seeds = worlds.step([actions[agent] for agent in agents])
        ended = bool(terminated[0] or truncated[0])
        infos = self._infos(int(seeds[0]))
        self.agents = [] if ended else agents
        return (
            dict(zip(agents, seen, strict=True)),
            dict(zip(agents, map(float, rewards), strict=True)),
            dict(zip(agents, map(bool, terminated), strict=True)),
            dict(zip(agents, map(bool, truncated), strict=True)),
            infos,
        )

    @property
    def trace_hash(self) -> str:
        """The hash over all events of the episode until now, as in the column of a run."""
        return self._open().compiled.trace_hashes()[0]

    def render(self) -> None:
        """There is nothing to see."""

    def close(self) -> None:
        """Ends its thread."""
        self._worlds = None

    def _infos(self, seed: int) -> dict[str, dict[str, Any]]:
        return {agent: {"seed": seed} for agent in self.agents}

    def _open(self) -> _Worlds:
        if self._worlds is None:
            raise RuntimeError("the environment is closed")
        return self._worlds


def parallel_env(**options: Any) -> ParallelEnvironment:
    """An environment with these options of `ParallelEnvironment`, by the name that PettingZoo's tools look for."""
    return ParallelEnvironment(**options)
