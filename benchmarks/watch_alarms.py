"""How often ``oortriage watch`` cries wolf, and how soon it finds a leak: made-up histories at the default settings.

``python benchmarks/watch_alarms.py --hours 8 --histories 4``. Samples every 10 s. Noise: independent values; values that keep
nine tenths of the last one; a sawtooth whose period wanders. Leaks: a steady rate under independent noise.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable

from oortriage.watch.sample import DeviceMemory, ProcessMemory, Sample, Settings
from oortriage.watch.watcher import Event, Watcher

MIB, GIB = 1 << 20, 1 << 30
INTERVAL = 10.0
Draw = Callable[[random.Random, float], Callable[[float], float]]


def independent(source: random.Random, spread: float) -> Callable[[float], float]:
    return lambda _: source.gauss(0, spread)


def remembering(source: random.Random, spread: float) -> Callable[[float], float]:
    level = [0.0]

    def value(_: float) -> float:
        level[0] = 0.9 * level[0] + source.gauss(0, spread * 0.436)  # so that the values spread as asked
        return level[0]

    return value


def long_teeth(source: random.Random, spread: float) -> Callable[[float], float]:
    return sawtooth(source, spread, 900)


def sawtooth(source: random.Random, spread: float, longest: float = 450) -> Callable[[float], float]:
    state = [0.0, source.uniform(100, longest)]

    def value(t: float) -> float:
        if t - state[0] > state[1]:
            state[:] = [t, source.uniform(100, longest)]
        return (t - state[0]) / 300 * spread

    return value


def fired(curve: Callable[[float], float], hours: float, *, first: bool = False) -> list[Event]:
    watcher = Watcher(Settings())
    for number in range(int(hours * 3600 / INTERVAL)):
        t = number * INTERVAL
        used = int(20 * GIB + curve(t))
        process = ProcessMemory(1, "p", used)
        watcher.feed(Sample(1e9 + t, (DeviceMemory("0", "", "", 80 * GIB, used, 80 * GIB - used, (process,)),)))
        if first and watcher.events:
            break
    return [one for one in watcher.events if one.state == "fired"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hours", type=float, default=8)
    parser.add_argument("--histories", type=int, default=4)
    given = parser.parse_args()
    print("| noise | spread | hours | alarms |\n|---|---|---|---|")
    draws: dict[str, Draw] = {"independent": independent, "remembers nine tenths": remembering}
    draws |= {"teeth of 2 to 7 min": sawtooth, "teeth of 2 to 15 min": long_teeth}
    for name, draw in draws.items():
        for spread in (50 * MIB, 1 * GIB):
            alarms = sum(len(fired(draw(random.Random(seed), spread), given.hours)) for seed in range(given.histories))
            print(f"| {name} | {spread / MIB:,.0f} MiB | {given.hours * given.histories:g} | {alarms} |")
    print("\n| leak | noise about it | found in | found after, median |\n|---|---|---|---|")
    for rate, spread in ((100, 10), (10, 5), (10, 20), (2, 5)):
        after = []
        for seed in range(given.histories):
            noise = independent(random.Random(seed), spread * MIB)
            events = fired(lambda t, noise=noise, rate=rate: t / 60 * rate * MIB + noise(t), 3, first=True)
            after += [(one.time_s - 1e9) / 60 for one in events[:1]]
        middle = f"{sorted(after)[len(after) // 2]:.0f} min" if after else "-"
        print(f"| {rate} MiB/min | {spread} MiB | {len(after)} of {given.histories} | {middle} |")


if __name__ == "__main__":
    main()
