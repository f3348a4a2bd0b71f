"""Exported networks: the same numbers as NumPy's, the same runs as in the environment, and what is wrong is told."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import anabranch
from anabranch.gym import Environment
from anabranch.learned import Layer, Network

SHORT = {"duration": "10 s", "connection.receive_buffer.initial": "64 KiB", "connection.receive_buffer.max": "128 KiB"}

DELAY = {"uniform": "10..150 ms", "drawn": "slowly_varying", "every": "500 ms"}
VARYING = {**SHORT, "paths.fast.links.0.delay": DELAY, "paths.slow.links.0.delay": DELAY}


def random_network(seed: int) -> Network:
    """Two hidden layers of numbers that are drawn."""
    drawn = np.random.default_rng(seed)

    def layer(inputs: int, outputs: int, activation: str) -> Layer:
        weights = drawn.normal(0, inputs**-0.5, (outputs, inputs)).astype(np.float32)
        return Layer(weights, drawn.normal(0, 0.5, outputs).astype(np.float32), activation)

    return Network(
        2,
        0.1,
        [layer(23, 16, "tanh"), layer(16, 8, "relu"), layer(8, 2, "linear")],
        shift=drawn.normal(0, 1, 23).astype(np.float32),
        scale=drawn.uniform(0.01, 2, 23).astype(np.float32),
        clip=5.0,
        range=(-1.0, 1.0),
    )


def by_numpy(network: Network, observation: np.ndarray) -> np.ndarray:
    """The weights after an observation."""
    assert network.shift is not None
    assert network.scale is not None
    values = np.clip((observation - network.shift) * network.scale, -network.clip, network.clip)
    for layer in network.layers:
        values = layer.weights @ values + layer.bias
        if layer.activation == "tanh":
            values = np.tanh(values)
        elif layer.activation == "relu":
            values = np.maximum(values, 0)
    low, high = network.range
    return np.asarray(np.clip((values - low) / (high - low), 0, 1), np.float32)


def test_the_scheduler_computes_what_numpy_does() -> None:
    network, drawn = random_network(1), np.random.default_rng(2)
    for _ in range(200):
        observation = drawn.normal(0, 20, 23).astype(np.float32)
        np.testing.assert_allclose(network.weights(observation), by_numpy(network, observation), atol=2e-5)


def test_numbers_may_be_those_of_numpy() -> None:
    layers = [Layer(np.zeros((2, 23), np.float32), np.ones(2, np.float32))]
    of_numpy = Network(2, np.float64(0.1), layers, clip=np.float32(10), range=(np.float32(-1), np.float32(1)))  # type: ignore[arg-type]
    assert of_numpy.text() == Network(2, 0.1, layers, clip=10.0, range=(-1.0, 1.0)).text()


def delays() -> Network:
    """A path's weight falls from 1 to 0 while its smoothed round trip rises from 50 to 250 ms."""
    weights = np.zeros((2, 23), np.float32)
    weights[0, 2], weights[1, 12] = -1 / 200, -1 / 200
    return Network(2, 0.1, [Layer(weights, np.full(2, 1.25, np.float32))])


def constant(first: float, second: float) -> Network:
    """Always these weights."""
    return Network(2, 0.1, [Layer(np.zeros((2, 23), np.float32), np.array([first, second], np.float32))])


def in_the_environment(network: Network, seed: int) -> float:
    """Goodput, Mbit/s."""
    environment = Environment(policy="plain", set=VARYING, observes="sender")
    observation, _ = environment.reset(seed=seed)
    total, ended, steps = 0.0, False, 0
    while not ended:
        observation, reward, terminated, truncated, _ = environment.step(network.weights(observation))
        total, steps, ended = total + reward, steps + 1, terminated or truncated
    return 15.0 * total / steps


@pytest.mark.parametrize(
    ("network", "tolerance"), [(constant(1, 0.5), 1e-6), (constant(0.5, 1), 1e-6), (delays(), 0.05)]
)
def test_runs_with_the_file_are_what_the_agent_does_in_the_environment(
    network: Network, tolerance: float, tmp_path: Path
) -> None:
    seeds = range(1, 11)
    network.save(tmp_path / "network.txt")
    policy = f"plain,scheduler=learned,scheduler.weights=@{tmp_path}/network.txt"
    runs = anabranch.run("two_paths", policy=policy, seeds=seeds, set={**VARYING, "warm_up": "0 s"}).to_pandas()
    assert runs["policies"][0].count("scheduler.weights=@") == 1
    # In a run an interval ends with the first decision after it, in the environment at its end.
    expected = np.mean([in_the_environment(network, seed) for seed in seeds])
    assert runs["throughput"].mean() == pytest.approx(expected, rel=tolerance)


def test_another_content_of_the_file_is_another_run(tmp_path: Path) -> None:
    def hashes() -> tuple[str, str]:
        row = anabranch.run(
            "two_paths",
            policy=f"plain,scheduler=learned,scheduler.weights=@{tmp_path}/network.txt",
            seeds=[1],
            set=SHORT,
            out=str(tmp_path / "kept"),
        ).to_pandas()
        return row["key"][0], row["trace_hash"][0]

    random_network(3).save(tmp_path / "network.txt")
    first = hashes()
    assert hashes() == first
    random_network(4).save(tmp_path / "network.txt")
    key, trace_hash = hashes()
    assert key != first[0]
    assert trace_hash != first[1]


def test_a_model_that_is_no_scheduler_of_networks_is_told() -> None:
    other = SimpleNamespace(policy=SimpleNamespace(actor=None))
    with pytest.raises(ValueError, match="that of a PPO or A2C model with MlpPolicy, and SimpleNamespace has another"):
        Network.from_stable_baselines3(other, paths=2, interval=0.1)
    policy = SimpleNamespace(mlp_extractor=SimpleNamespace(policy_net=[]), action_net=None)
    both = SimpleNamespace(policy=policy, observation_space=Environment(set=SHORT).observation_space)
    with pytest.raises(ValueError, match=r'knows 23 numbers of 2 paths, .* shape \(26,\): .* observes="sender"'):
        Network.from_stable_baselines3(both, paths=2, interval=0.1)


def test_what_is_wrong_is_told(tmp_path: Path) -> None:
    layer = Layer(np.zeros((2, 23), np.float32), np.zeros(2, np.float32))
    with pytest.raises(ValueError, match="a layer has weights of shape"):
        Network(2, 0.1, [Layer(layer.weights, np.zeros(3, np.float32))]).text()
    with pytest.raises(ValueError, match="'step' is none of tanh, relu, linear"):
        Network(2, 0.1, [Layer(layer.weights, layer.bias, "step")]).text()
    with pytest.raises(ValueError, match="NaN is not finite"):
        Network(2, 0.1, [Layer(layer.weights * np.nan, layer.bias)]).text()
    with pytest.raises(ValueError, match="its last layer does not have 3 numbers"):
        Network(3, 0.1, [Layer(np.zeros((2, 33), np.float32), layer.bias)]).text()
    for observation in ([0.0, 0.0, 0.0], [], np.zeros((1, 23))):
        with pytest.raises(ValueError, match=r"an observation has 23 numbers, of shape \(23,\), and not \("):
            Network(2, 0.1, [layer]).weights(observation)
    with pytest.raises(ValueError, match=r"the shift has 23 numbers, of shape \(23,\), and not \(5,\)"):
        Network(2, 0.1, [layer], shift=np.ones(5, np.float32)).text()
    with pytest.raises(ValueError, match="a layer has 3 inputs, and 2 numbers come to it"):
        Network(2, 0.1, [layer, Layer(np.zeros((2, 3), np.float32), layer.bias)]).text()
    for paths in (-1, 17):
        with pytest.raises(ValueError, match=f"a network has 1 to 16 paths, and not {paths}"):
            Network(paths, 0.1, [layer]).text()
    for clip in (-1.0, float("nan")):
        with pytest.raises(ValueError, match="which is not 0 or more"):
            Network(2, 0.1, [layer], clip=clip).weights(np.zeros(23))
    with pytest.raises(ValueError, match="NaN is not finite"):
        Network(2, 0.1, [layer], range=(float("nan"), 1.0)).text()
    with pytest.raises(ValueError, match="there is no such file"):
        anabranch.run("two_paths", policy=f"scheduler=learned,scheduler.weights=@{tmp_path}/none.txt", seeds=1)
