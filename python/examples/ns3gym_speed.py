"""Measures ns3-gym on the network of ns3_two_paths.cc: steps per second and core, to be held against gym_speed.py.

ns3-gym has no package. With its sources (github.com/tkn-tub/ns3-gym) in the directory NS3GYM, libzmq and protobuf:

    cd NS3GYM/model && protoc --cpp_out=. --python_out=ns3gym/ns3gym messages.proto && cd -
    g++ ... (as in ns3_two_paths.cc) -DNS3_GYM -INS3GYM/model NS3GYM/model/*.cc -lzmq -lprotobuf -o ns3gym_two_paths
    pip install pyzmq protobuf==4.21.12 "numpy<1.24" gym
    PYTHONPATH=NS3GYM/model/ns3gym python python/examples/ns3gym_speed.py ns3gym_two_paths

It listens on a port of all addresses. The processor time of both processes counts.
"""

from __future__ import annotations

import argparse
import os
import subprocess

from ns3gym import ns3env


def spent() -> float:
    """Processor seconds of this process and of its children that ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def main() -> None:
    """Measures and prints a line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--runs", type=int, default=5, help="of 30 simulated seconds each")
    parser.add_argument("--interval", type=float, default=0.1, help="simulated seconds of a step")
    parser.add_argument("--port", type=int, default=5555)
    options = parser.parse_args()
    environment = os.environ | {"STEP": str(round(options.interval * 1e6))}
    steps, start = 0, spent()
    for run in range(options.runs):
        port = options.port + run
        with subprocess.Popen([options.program, str(port)], env=environment):
            env = ns3env.Ns3Env(port=port, startSim=False)
            env.reset()
            done = False
            while not done:
                _, _, done, _ = env.step([1.0, 1.0])
                steps += 1
    seconds = spent() - start
    print(f"ns3-gym: {steps} steps in {seconds:.2f} s of processor time, {steps / seconds:.0f} steps/s/core")


if __name__ == "__main__":
    main()
