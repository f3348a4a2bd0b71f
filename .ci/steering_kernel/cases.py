"""The cases of .ci/steering-kernel: paths, receive buffer, direction, congestion control; and the modes of each."""

import dataclasses

# Rate in Mbit/s, one-way delay in ms, queue in packets, loss in per cent: some of those of .ci/steering.
PAIRS = {
    "alike": [(10, 20, 100, 0), (10, 20, 100, 0)],
    "Wi-Fi, LTE": [(20, 10, 100, 0.1), (10, 30, 200, 0)],
    "slow second": [(20, 10, 100, 0), (4, 100, 100, 0)],
    "satellite": [(20, 15, 100, 0), (10, 300, 500, 0)],
    "narrow second": [(20, 10, 200, 0), (1, 150, 50, 0)],
    "lossy second": [(20, 10, 100, 0), (10, 30, 100, 2)],
}
# Bytes that the program asks for, which the kernel doubles.
BUFFERS = {"128 kB": "131072", "automatic": "automatic"}

# Seconds before the measurement, and of it.
WARM_UP, MEASURED = 6, 6

# How the paths are used: by which of the kernel's path managers at the client and the server, and where a daemon runs with what.
ALL = ("all", None, None)
ALONE = ("alone", None, None)
STEERED = ("steered", "sender", "goodput_trial")
RECEIVER = ("steered at the receiver", "receiver", "goodput_trial,path_manager.late=0.03")


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    scenario: str
    settings: tuple
    buffer: str
    direction: str
    congestion: str
    warm_up: float
    measured: float
    modes: tuple


def pairs():
    for congestion in ("cubic", "bbr"):
        for pair, paths in PAIRS.items():
            for buffer, size in BUFFERS.items():
                for direction in ("upload", "download"):
                    if congestion == "bbr" and (direction, buffer) != ("upload", "128 kB"):
                        continue
                    settings = []
                    for name, (rate, delay, queue, loss) in zip(("first", "second"), paths):
                        link = f"paths.{name}.links.link"
                        settings += [f"{link}.rate={rate} Mbit/s", f"{link}.delay={delay} ms", f"{link}.queue={queue} packets"]
                        settings += [f"{link}.loss={loss} %"] if loss else []
                    modes = (ALL, ALONE, STEERED) + ((RECEIVER,) if direction == "download" else ())
                    name = f"{pair}, {buffer}, {direction}, {congestion}"
                    yield Case(name, "scenarios/steering.toml", tuple(settings), size, direction, congestion, WARM_UP, MEASURED, modes)


def papers():
    """Whole runs count. The emulation has no TCP cross traffic, so that all of LM3's is UDP here."""
    steered = lambda *managers: tuple((f"steered by {manager.split(',')[0]}", "sender", manager) for manager in managers)
    managers = steered("lm3", "pu2m2", "goodput_trial")
    yield Case("LM3, section 2", "scenarios/lm3_motivation.toml", (), "65536", "upload", "cubic", 0, 120, (ALL, ALONE) + managers)
    no_tcp = tuple(f"paths.{path}.background.tcp=0 %" for path in "ABC")
    yield Case("LM3, section 4", "scenarios/lm3_evaluation.toml", no_tcp, "65536", "upload", "cubic", 0, 100, (ALL,) + managers)
    managers = steered("one_way_delay,path_manager.measured_by=sender", "pu2m2", "goodput_trial")
    yield Case("recPR, section V.B", "scenarios/recpr_bulk.toml", (), "65536", "upload", "cubic", 0, 100, (ALL,) + managers)
