"""Measures environments: steps per second and core.

    python python/examples/gym_speed.py

A row per number of environments: the processor time of the whole process is counted, user and system, of all threads;
so a row with more threads shows what they cost, and the machine may be busy. The first environment is Gymnasium's
interface to a vector of one.

With `--ns3 PROGRAM` (see ns3_two_paths.cc), ns-3 simulates the same two paths with a TCP flow on each, in such steps:
once stepped by lines through pipes, as the least that a bridge to Python does, and once with all of its lines at hand.
There the processor time of ns-3 and of this process counts.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import time

import numpy as np

from anabranch.gym import Environment, VectorEnv


def single(steps: int, options: argparse.Namespace) -> float:
    """Processor seconds of so many steps of one `Environment`."""
    env = Environment(scenario=options.scenario, interval=options.interval)
    action = np.ones(len(env.paths), np.float32)
    start = time.process_time()
    env.reset(seed=1)
    for _ in range(steps):
        _, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            env.reset()
    return time.process_time() - start


def vector(envs: int, steps: int, options: argparse.Namespace) -> float:
    """Processor seconds of so many steps of each environment of a vector."""
    env = VectorEnv(envs, threads=options.threads, scenario=options.scenario, interval=options.interval)
    actions = np.ones((envs, len(env.paths)), np.float32)
    start = time.process_time()
    env.reset(seed=1)
    for _ in range(steps):
        env.step(actions)
    return time.process_time() - start


def spent() -> float:
    """Processor seconds of this process and of its children that ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def ns3_bridge(program: str, runs: int, steps: int, environment: dict[str, str]) -> float:
    """Processor seconds of runs of so many steps, each of them asked for and answered by a line."""
    start = spent()
    for _ in range(runs):
        with subprocess.Popen(
            [program], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        ) as process:
            if process.stdin is None or process.stdout is None:
                raise RuntimeError("there are no pipes to the program")
            for _ in range(steps):
                process.stdin.write(b"1 1\n")
                np.array(process.stdout.readline().split(), np.float32)
            process.stdin.close()
    return spent() - start


def ns3_alone(program: str, runs: int, steps: int, environment: dict[str, str]) -> float:
    """Processor seconds of runs of so many steps, asked for at once."""
    start = spent()
    for _ in range(runs):
        subprocess.run([program], env=environment, input=b"1 1\n" * steps, stdout=subprocess.DEVNULL, check=True)
    return spent() - start


def main() -> None:
    """Measures and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenario", default="two_paths")
    parser.add_argument("--interval", type=float, default=0.1, help="simulated seconds of a step")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int, default=16384, help="of all environments together")
    parser.add_argument("--ns3", help="the program made of ns3_two_paths.cc")
    parser.add_argument("--envs", type=int, nargs="*", default=[1, 64, 1024])
    options = parser.parse_args()
    print(f"{options.scenario}, {options.interval} s a step, {options.threads} threads")
    print(f"{'environments':>14} {'steps':>8} {'processor s':>12} {'steps/s/core':>13} {'simulated s/s/core':>19}")
    rows = [("Environment", options.steps, single(options.steps, options))]
    for envs in options.envs:
        each = max(1, options.steps // envs)
        rows.append((str(envs), envs * each, vector(envs, each, options)))
    if options.ns3 is not None:
        environment = os.environ | {"STEP": str(round(options.interval * 1e6))}
        steps = round(30 / options.interval)
        runs = max(1, options.steps // 4 // steps)
        rows.append(("ns-3, bridge", runs * steps, ns3_bridge(options.ns3, runs, steps, environment)))
        rows.append(("ns-3, alone", runs * steps, ns3_alone(options.ns3, runs, steps, environment)))
    for name, steps, seconds in rows:
        rate = steps / seconds
        print(f"{name:>14} {steps:>8} {seconds:>12.2f} {rate:>13.0f} {rate * options.interval:>19.1f}")


if __name__ == "__main__":
    main()
