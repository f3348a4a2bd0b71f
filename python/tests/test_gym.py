"""Environments: what Gymnasium asks of them, what they share with runs, and what is wrong is told."""

import copy
import os
import pickle
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import anabranch
from anabranch.gym import Environment, VectorEnv

NAMES = ["Scheduler", "CongestionControl", "PathManager"]
SHORT = {"duration": "3 s"}


def episode(env: Environment, action: Any, seed: int) -> tuple[float, list[Any]]:
    """The sum of the rewards of an episode with one action, and all of its observations."""
    seen = [env.reset(seed=seed)[0]]
    total, ended = 0.0, False
    while not ended:
        observation, reward, terminated, truncated, _ = env.step(action)
        ended = terminated or truncated
        seen.append(observation)
        total += reward
    return total, seen


@pytest.mark.parametrize("name", NAMES)
def test_gymnasium_accepts_them(name: str) -> None:
    env = gymnasium.make(f"anabranch/{name}-v0", set=SHORT).unwrapped
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Times and sizes have no upper limit.
        warnings.filterwarnings("ignore", message=".*observation space maximum value is infinity.*")
        check_env(env)


def test_a_copy_is_a_new_one_with_the_same_arguments() -> None:
    env = Environment(policy="plain", reward="power", set=SHORT)
    expected = episode(env, np.ones(2), 4)[0]
    env.reset(seed=4)
    vector = VectorEnv(3, threads=1, decides="congestion", set=SHORT)
    for copied in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        with pytest.raises(RuntimeError, match="reset comes before the first step"):
            copied.step(np.ones(2))
        assert episode(copied, np.ones(2), 4)[0] == expected
    for copies in (copy.deepcopy(vector), pickle.loads(pickle.dumps(vector))):
        assert copies.num_envs == 3
        assert copies.action_space == vector.action_space
        assert np.array_equal(copies.reset(seed=1)[0], vector.reset(seed=1)[0])


def test_a_constant_policy_leaves_the_trace_of_a_run() -> None:
    for policy in ("plain", "anabranch"):
        runs = anabranch.compare("two_paths", policies=policy, seeds=[4, 5], set=SHORT).to_pandas()
        expected = dict(zip(runs["seed"], runs["trace_hash"], strict=True))
        env = Environment(policy=policy, set=SHORT, decides="nothing")
        episode(env, np.ones(2), 4)
        assert env.trace_hash == expected[4] != expected[5]


def test_a_vector_leaves_the_traces_of_runs() -> None:
    runs = anabranch.run("two_paths", policy="plain", seeds=range(1, 6), set=SHORT).to_pandas()
    vector = VectorEnv(5, threads=2, policy="plain", set=SHORT, decides="nothing")
    vector.reset(seed=1)
    for _ in range(30):
        truncated = vector.step(np.ones((5, 2)))[3]
    assert truncated.all()
    assert vector.trace_hashes == list(runs.sort_values("seed")["trace_hash"])


def test_an_episode_is_a_function_of_seed_and_actions() -> None:
    env = Environment(set=SHORT)
    one, seen = episode(env, np.array([0.7, 0.3]), 3)
    assert len(seen) == 31
    again, seen_again = episode(Environment(set=SHORT), np.array([0.7, 0.3]), 3)
    assert (one, np.array(seen).tolist()) == (again, np.array(seen_again).tolist())
    assert episode(env, np.array([1.0, 0.0]), 3)[0] < 0.9 * one


def test_seeds_are_drawn_after_the_one_that_was_given() -> None:
    env, other = Environment(set=SHORT), Environment(set=SHORT)
    seeds = [[one.reset(seed=9)[1]["seed"], *(one.reset()[1]["seed"] for _ in range(3))] for one in (env, other)]
    assert seeds[0] == seeds[1]
    assert seeds[0][0] == 9
    assert len(set(seeds[0])) == 4


def test_make_vec_makes_the_vector_of_the_package() -> None:
    vector = gymnasium.make_vec(
        "anabranch/Scheduler-v0", num_envs=4, vectorization_mode="vector_entry_point", set=SHORT, threads=3
    )
    assert isinstance(vector, VectorEnv)
    observations, infos = vector.reset(seed=20)
    assert observations in vector.observation_space
    assert infos["seed"].tolist() == [20, 21, 22, 23]
    vector.action_space.seed(1)
    observations, rewards, terminated, truncated, _ = vector.step(vector.action_space.sample())
    assert observations.shape == (4, 26)
    assert observations.dtype == np.float32
    assert observations in vector.observation_space
    assert rewards.shape == terminated.shape == truncated.shape == (4,)
    vector.close()
    vector.close()


def test_a_vector_does_what_its_environments_do_alone() -> None:
    action = np.array([0.2, 0.9], np.float32)
    vector = VectorEnv(3, threads=2, set=SHORT)
    seen = [vector.reset(seed=[8, 3, 5])[0]] + [vector.step(np.tile(action, (3, 1)))[0] for _ in range(30)]
    for place, seed in enumerate([8, 3, 5]):
        alone = episode(Environment(set=SHORT), action, seed)[1]
        assert np.array_equal(np.array(alone), np.array(seen)[:, place])


def test_any_thread_may_use_them_and_drop_them() -> None:
    """One at a time goes on; who waits for another does not hold Python's lock."""
    action = np.ones(2)
    expected = episode(Environment(set=SHORT), action, 7)[0]
    with ThreadPoolExecutor(1) as pool:
        env = Environment(set=SHORT)
        assert pool.submit(episode, env, action, 7).result()[0] == expected
        assert env.trace_hash == pool.submit(lambda: env.trace_hash).result()
        with warnings.catch_warnings(record=True) as caught:
            # Python tells with a warning what cannot be dropped.
            pool.submit(env.close).result()
            assert caught == []
    vector = VectorEnv(2, threads=2, set=SHORT)
    vector.reset(seed=1)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: vector.step(np.ones((2, 2))), range(30)))
    again = VectorEnv(2, threads=1, set=SHORT)
    again.reset(seed=1)
    for _ in range(30):
        again.step(np.ones((2, 2)))
    assert vector.trace_hashes == again.trace_hashes


def in_a_fork(work: Callable[[], str]) -> str:
    """What the work gives in a process that is forked from this one."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        # This process has threads, as that of a user has.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        signal.alarm(20)
        said = b"nothing"
        try:
            said = work().encode()
        except BaseException as error:
            said = repr(error).encode()
        os.write(writer, said)
        os._exit(0)
    os.close(writer)
    with open(reader, "rb") as said_there:
        said = said_there.read()
    _, status = os.waitpid(child, 0)
    assert status == 0, "it was killed, at the latest by its alarm"
    return said.decode()


def test_a_fork_is_told_that_it_has_not_the_threads_of_an_environment() -> None:
    ones = np.ones(2)
    one = {"env": Environment(set=SHORT)}
    many = {"env": VectorEnv(2, threads=2, set=SHORT)}
    one["env"].reset(seed=1)
    many["env"].reset(seed=1)
    calls: list[Callable[[], object]] = [
        lambda: one["env"].reset(seed=1),
        lambda: one["env"].step(ones),
        lambda: one["env"].trace_hash,
        lambda: many["env"].reset(seed=1),
        lambda: many["env"].step(np.ones((2, 2))),
        lambda: many["env"].trace_hashes,
    ]

    def call_all() -> str:
        for call in calls:
            with pytest.raises(
                RuntimeError, match=rf"made in process {os.getppid()}, .* process {os.getpid()}, .*fork"
            ):
                call()
        return "told"

    def make_new() -> str:
        many["env"].close()
        del many["env"]
        # The old one is dropped, and its copy is a new one.
        one["env"] = copy.deepcopy(one["env"])
        return str(episode(one["env"], ones, 4)[0])

    assert in_a_fork(call_all) == "told"
    assert in_a_fork(make_new) == str(episode(one["env"], ones, 4)[0])
    many["env"].step(np.ones((2, 2)))


def test_seeds_are_whole_numbers() -> None:
    vector = VectorEnv(2, threads=1, set=SHORT)
    for seeds in ([1.5, 2], [1, "2"], [1, 2**63], [-1, 1]):
        with pytest.raises(ValueError, match="a seed is a whole number from 0 to 9223372036854775807, and not "):
            vector.reset(seed=seeds)  # type: ignore[arg-type]
    assert vector.reset(seed=np.array([3, 4]))[1]["seed"].tolist() == [3, 4]


@pytest.mark.parametrize("seed", [-1, 1.5, 2**63, "7", np.float64(3)])
def test_a_seed_that_is_none_is_told_by_each_kind(seed: Any) -> None:
    for env in (Environment(set=SHORT), VectorEnv(2, threads=1, set=SHORT)):
        with pytest.raises(ValueError, match="a seed is a whole number from 0 to 9223372036854775807, and not "):
            env.reset(seed=seed)


def test_a_seed_of_numpy_is_taken_as_that_of_python() -> None:
    env, vector = Environment(set=SHORT), VectorEnv(2, threads=1, set=SHORT)
    assert env.reset(seed=np.int64(7))[1]["seed"] == 7
    assert vector.reset(seed=np.int64(7))[1]["seed"].tolist() == [7, 8]
    assert vector.reset(seed=np.array([9, 7]))[1]["seed"].tolist() == [9, 7]


@pytest.mark.parametrize("seed", [5, [5, 6], [5, None]])
def test_what_a_vector_draws_is_what_its_environments_draw(seed: Any) -> None:
    drawn = []
    for _ in range(2):
        own = VectorEnv(2, threads=1, set=SHORT)
        own.reset(seed=[1, 2])
        others = gymnasium.vector.SyncVectorEnv([lambda: Environment(set=SHORT)] * 2)
        others.reset(seed=[1, 2])
        for vector in (own, others):
            drawn.append([vector.reset(seed=one)[1]["seed"].tolist() for one in (seed, None, None)])
    assert drawn == [drawn[0]] * 4


def test_an_episode_that_a_vector_began_can_be_run_again_alone() -> None:
    settings = {"duration": "0.4 s", "warm_up": "0 s", "sample": "100 ms"}
    vector = VectorEnv(1, policy="plain", decides="nothing", set=settings)
    vector.reset(seed=11)
    for _ in range(9):
        infos = vector.step(np.ones((1, 2)))[4]
    seed = int(infos["seed"][0])
    assert seed == 11 + 2**32
    env = Environment(policy="plain", decides="nothing", set=settings)
    episode(env, np.ones(2), seed)
    assert [env.trace_hash] == vector.trace_hashes
    runs = anabranch.run("two_paths", policy="plain", seeds=[seed], set=settings).to_pandas()
    assert [env.trace_hash] == list(runs["trace_hash"])


def test_seed_zero_is_one_like_others() -> None:
    env = Environment(policy="plain", decides="nothing", set=SHORT)
    episode(env, np.ones(2), 0)
    runs = anabranch.run("two_paths", policy="plain", seeds=[0, 1], set=SHORT).to_pandas().sort_values("seed")
    assert list(runs["seed"]) == [0, 1]
    assert [env.trace_hash] == list(runs["trace_hash"])[:1]
    assert len(set(runs["trace_hash"])) == 2


def test_the_next_episode_begins_in_the_step_after_the_end() -> None:
    vector = VectorEnv(2, set={"duration": "0.2 s", "warm_up": "0 s", "sample": "100 ms"})
    vector.reset(seed=1)
    ones = np.ones((2, 2))
    ends = [vector.step(ones)[3].tolist() for _ in range(2)]
    assert ends == [[False, False], [True, True]]
    observations, rewards, _, truncated, infos = vector.step(ones)
    assert not observations.any()
    assert not rewards.any()
    assert not truncated.any()
    assert infos["seed"].tolist() == [1 + 2**32, 2 + 2**32]


def test_features_have_names_and_units() -> None:
    features = Environment(set=SHORT).features
    assert features[2] == ("fast.smoothed_rtt", "ms")
    assert features[-6] == ("goodput", "Mbit/s")
    assert len(features) == 26


def test_a_path_that_is_suspended_carries_nothing() -> None:
    env = Environment(decides="path_manager", set=SHORT)
    seen = episode(env, np.array([0, 1], np.int8), 2)[1]
    at = [name for name, _ in env.features].index("fast.sent")
    assert seen[-1][at] == 0 < seen[1][at]


@pytest.mark.parametrize("reward", ["goodput", "aurora", "power", "stalls"])
def test_rewards_are_at_most_one(reward: str) -> None:
    total, seen = episode(Environment(reward=reward, set=SHORT), np.ones(2), 1)
    assert 0 < total < len(seen)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"interval": 0}, "interval of a step is a time above 0"),
        ({"interval": 60.0}, "at most the duration"),
        ({"reward": "fame"}, "'fame' is none of goodput"),
        ({"decides": "everything"}, "'everything' is none of nothing"),
        ({"policy": "plain_tcp"}, "multipath on all paths, and plain_tcp is not"),
        ({"policy": "no_policy"}, "no_policy"),
        ({"set": {"duration": "soon"}}, "duration"),
        ({"set": {"transfer.direction": "download"}}, "needs a transfer by upload"),
    ],
)
def test_what_is_wrong_with_an_environment_is_told(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Environment(**arguments)
    with pytest.raises(ValueError, match=message):
        VectorEnv(2, **arguments)


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (np.ones(3), r"fast, slow: an array of shape \(1, 2\) in all, and not \(1, 3\)"),
        (1.0, r"and not \(1,\)"),
        ("both", "'both'.* is none"),
        ([0.5, 1.5], "a number of 0 to 1 for each of fast, slow, and .*1.5"),
        ([0.5, float("nan")], "has others"),
    ],
)
def test_what_is_wrong_with_an_action_is_told_and_costs_nothing(action: Any, message: str) -> None:
    env = Environment(set=SHORT)
    env.reset(seed=1)
    with pytest.raises(ValueError, match=message):
        env.step(action)
    assert env.step(np.ones(2))[0].any()


def test_an_action_of_another_space_is_told() -> None:
    paths = Environment(set=SHORT, decides="path_manager")
    paths.reset(seed=1)
    with pytest.raises(ValueError, match=r"an action is 0 or 1 for each of fast, slow, and .*0.5"):
        paths.step(np.array([0.5, 1.0]))
    windows = Environment(set=SHORT, decides="congestion")
    windows.reset(seed=1)
    for wrong in ({"fast": 1.0}, None, np.array([1j, 0]), 7, [[0.5, 0.5], [0.5, 0.5]]):
        with pytest.raises(ValueError, match="an action is a number of -1 to 1 for each of fast, slow"):
            windows.step(wrong)  # type: ignore[arg-type]
    vector = VectorEnv(3, set=SHORT)
    vector.reset(seed=1)
    with pytest.raises(ValueError, match=r"an array of shape \(3, 2\) in all, and not \(2, 3\)"):
        vector.step(np.ones((2, 3)))


def test_the_order_of_calls_is_told() -> None:
    env = Environment(set={"duration": "0.1 s", "warm_up": "0 s", "sample": "100 ms"})
    with pytest.raises(RuntimeError, match="reset comes before"):
        env.step(np.ones(2))
    episode(env, np.ones(2), 1)
    with pytest.raises(RuntimeError, match="after the last one"):
        env.step(np.ones(2))
    with pytest.raises(ValueError, match="no options, and not colour"):
        env.reset(options={"colour": 1})
    with pytest.raises(ValueError, match="a seed is a whole number"):
        VectorEnv(2).reset(seed=[1, -1])
    with pytest.raises(ValueError, match="3 seeds for 2"):
        VectorEnv(2).reset(seed=[1, 2, 3])
    with pytest.raises(RuntimeError, match="reset comes before"):
        VectorEnv(2).step(np.ones((2, 2)))
    env.close()
    with pytest.raises(RuntimeError, match="closed"):
        env.reset()


def test_without_gymnasium_it_says_what_to_install() -> None:
    code = "import sys; sys.modules['gymnasium'] = None; import anabranch.gym"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.stderr.splitlines()[-1].endswith("pip install 'anabranch[gym]'")
