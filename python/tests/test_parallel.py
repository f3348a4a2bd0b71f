"""Connections that learn beside each other: what PettingZoo asks of them, and what they share with runs."""

import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from pettingzoo.test import parallel_api_test, parallel_seed_test

import anabranch
from anabranch.parallel import ParallelEnvironment, parallel_env

SHORT = {"duration": "3 s"}


def episode(env: ParallelEnvironment, actions: dict[str, Any], seed: int) -> dict[str, float]:
    """The sums of the agents' rewards in an episode in which they always do the same."""
    env.reset(seed=seed)
    sums = dict.fromkeys(env.possible_agents, 0.0)
    while env.agents:
        for agent, reward in env.step(actions)[1].items():
            sums[agent] += reward
    return sums


@pytest.mark.parametrize("decides", ["scheduler", "congestion"])
def test_pettingzoo_accepts_them(decides: str) -> None:
    parallel_api_test(parallel_env(decides=decides, set=SHORT), num_cycles=100)
    parallel_seed_test(lambda: parallel_env(decides=decides, set=SHORT), num_cycles=50)


def test_a_copy_is_a_new_one_with_the_same_arguments() -> None:
    env = parallel_env(agents=3, set=SHORT)
    copied = pickle.loads(pickle.dumps(env))
    assert copied.possible_agents == env.possible_agents
    actions = {agent: np.ones(2) for agent in env.possible_agents}
    assert episode(copied, actions, 5) == episode(env, actions, 5)


@pytest.mark.parametrize("agents", [1, 2, 3])
def test_agents_that_decide_nothing_leave_the_trace_of_a_run(agents: int) -> None:
    env = ParallelEnvironment(agents=agents, policy="plain", decides="nothing", set=SHORT)
    episode(env, {agent: np.ones(2) for agent in env.possible_agents}, 4)
    settings = {**SHORT, "transfer.connections": agents}
    runs = anabranch.run("two_paths", policy="plain", seeds=[4], set=settings).to_pandas()
    assert [env.trace_hash] == list(runs["trace_hash"])


def test_a_scenario_needs_no_transfer_for_several_agents() -> None:
    link = {"rate": "10 Mbit/s", "delay": "10 ms", "queue": "50 packets"}
    paths = [{"name": name, "links": [link]} for name in ("a", "b")]
    scenario = {"name": "bare", "duration": "3 s", "connection": {"receive_buffer": "1 MB"}, "paths": paths}
    assert len(parallel_env(agents=3, scenario=scenario).reset(seed=1)[0]) == 3


def test_each_agent_decides_for_its_own_connection() -> None:
    env = parallel_env(set=SHORT)
    assert env.possible_agents == ["connection 1", "connection 2"]
    apart = {"connection 1": np.array([1.0, 0.0]), "connection 2": np.array([0.0, 1.0])}
    env.reset(seed=1)
    total = 0.0
    for _ in range(25):
        seen, rewards, terminated, truncated, infos = env.step(apart)
        total += sum(rewards.values())
    names = [name for name, _ in env.features]
    sent = {
        (agent, path): seen[agent][names.index(f"{path}.sent")] for agent in env.possible_agents for path in env.paths
    }
    fast, slow = env.paths
    assert sent["connection 1", fast] > 1.0
    assert sent["connection 1", slow] == 0.0
    assert sent["connection 2", fast] == 0.0
    assert sent["connection 2", slow] > 1.0
    # A step may deliver what waited for a hole, but not the whole episode more than there is.
    assert 0.5 < total / 25 <= 1.0
    assert not any(terminated.values() or truncated.values())
    assert infos == {agent: {"seed": 1} for agent in env.possible_agents}


def test_who_competes_on_both_paths_takes_from_the_other() -> None:
    both, fast = np.array([1.0, 1.0]), np.array([1.0, 0.0])
    env = parallel_env(set={"duration": "10 s"})
    shared = episode(env, {"connection 1": fast, "connection 2": fast}, 2)
    greedy = episode(env, {"connection 1": both, "connection 2": fast}, 2)
    assert greedy["connection 1"] > 1.2 * shared["connection 1"]
    again = episode(parallel_env(set={"duration": "10 s"}), {"connection 1": both, "connection 2": fast}, 2)
    assert again == greedy
    assert episode(env, {"connection 1": both, "connection 2": fast}, 3) != greedy


def test_seeds_are_drawn_after_the_one_that_was_given() -> None:
    def seeds(env: ParallelEnvironment) -> list[int]:
        first = env.reset(seed=9)[1]["connection 1"]["seed"]
        return [first, *(env.reset()[1]["connection 2"]["seed"] for _ in range(3))]

    drawn = seeds(parallel_env(set=SHORT))
    assert drawn == seeds(parallel_env(set=SHORT))
    assert (drawn[0], len(set(drawn))) == (9, 4)


def test_what_is_wrong_is_told() -> None:
    with pytest.raises(ValueError, match="a path manager is a host's"):
        parallel_env(decides="path_manager")
    with pytest.raises(ValueError, match=r"transfer.connections=0: 0 is not possible"):
        parallel_env(agents=0)
    env = parallel_env(set=SHORT)
    with pytest.raises(RuntimeError, match="reset comes before"):
        env.step({})
    env.reset(seed=1)
    with pytest.raises(ValueError, match=r"actions are of connection 1, connection 2, and not of connection 1$"):
        env.step({"connection 1": np.ones(2)})
    with pytest.raises(ValueError, match=r"shape \(2, 2\) in all, and not \(2, 3\)"):
        env.step({agent: np.ones(3) for agent in env.agents})
    with pytest.raises(ValueError, match="a number of 0 to 1"):
        env.step({agent: np.full(2, 2.0) for agent in env.agents})
    env.close()
    with pytest.raises(RuntimeError, match="closed"):
        env.reset()


def test_without_pettingzoo_it_says_what_to_install() -> None:
    code = "import sys; sys.modules['pettingzoo'] = None; import anabranch.parallel"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.stderr.splitlines()[-1].endswith("pip install 'anabranch[pettingzoo]'")
